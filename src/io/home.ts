import { join } from "node:path";

export interface Platform {
	readonly platform: string;
	readonly userHome: string;
	readonly env: Readonly<Record<string, string | undefined>>;
}

/** Where Kvasir keeps its state when nothing else is said: the platform's folder for application data. */
export function homeFolder({ platform, userHome, env }: Platform): string {
	if (platform === "win32") return join(env.LOCALAPPDATA ?? join(userHome, "AppData", "Local"), "kvasir");
	if (platform === "darwin") return join(userHome, "Library", "Application Support", "kvasir");
	return join(env.XDG_DATA_HOME || join(userHome, ".local", "share"), "kvasir");
}
