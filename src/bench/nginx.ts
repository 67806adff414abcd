import { type ChildProcess, spawn } from "node:child_process";
import { writeFile } from "node:fs/promises";
import net, { type AddressInfo } from "node:net";
import { join } from "node:path";
import { KvasirError } from "../errors.ts";
import type { Clock } from "../io/clock.ts";

/** An nginx of one process that passes WebSockets on, the way docs/operating.md sets it up but without TLS. */
export interface Nginx {
	readonly pid: number;
	readonly port: number;
	stop(): Promise<void>;
}

export interface NginxParts {
	/** A folder of its own, for its configuration and temporary files. */
	readonly folder: string;
	/** Where it passes everything on. */
	readonly backendPort: number;
	/** Where programs are looked for, besides the folders of administrators. */
	readonly path: string | undefined;
	readonly clock: Clock;
	/** Told how to end it at once. */
	readonly onSpawn: (kill: () => void) => void;
}

const listeningMs = 10_000;

/** Resolves once it takes connections; null where there is no nginx. Throws `failed` where it does not start. */
export async function startNginx({ folder, backendPort, path, clock, onSpawn }: NginxParts): Promise<Nginx | null> {
	const port = await freePort();
	const configuration = join(folder, "nginx.conf");
	await writeFile(configuration, configurationOf(folder, port, backendPort));
	const child = spawn("nginx", ["-p", folder, "-c", configuration, "-e", join(folder, "error.log")], {
		stdio: "ignore",
		env: { PATH: `${path ?? ""}:/usr/sbin:/usr/local/sbin` },
	});
	onSpawn(() => child.kill("SIGKILL"));
	const ended = new Promise<void>((resolve) => child.once("close", () => resolve()));
	if (!(await hasStarted(child))) return null;
	const stop = async () => {
		child.kill("SIGTERM");
		const cancel = clock.after(2_000, () => child.kill("SIGKILL"));
		await ended;
		cancel();
	};
	for (const start = clock.monotonic(); !(await takesConnections(port)); await clock.sleep(20)) {
		if (child.exitCode === null && clock.monotonic() - start < listeningMs) continue;
		await stop();
		throw new KvasirError("failed", "Cannot start nginx: it does not listen", {
			hint: `nginx -t -c ${configuration} says why`,
		});
	}
	return { pid: child.pid!, port, stop };
}

/** One process, as the processes it is compared with have one each for what goes through them. */
function configurationOf(folder: string, port: number, backendPort: number): string {
	const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map(
		(name) => `${name}_temp_path ${folder}/${name};`,
	);
	return `
daemon off;
master_process off;
worker_processes 1;
pid ${folder}/nginx.pid;
events { worker_connections 1024; }
http {
	access_log off;
	${temporary.join("\n\t")}
	server {
		listen 127.0.0.1:${port};
		location / {
			proxy_pass http://127.0.0.1:${backendPort};
			proxy_http_version 1.1;
			proxy_set_header Upgrade $http_upgrade;
			proxy_set_header Connection upgrade;
			proxy_set_header Host $http_host;
		}
	}
}
`;
}

function hasStarted(child: ChildProcess): Promise<boolean> {
	return new Promise((resolve) => {
		child.once("spawn", () => resolve(true));
		child.once("error", () => resolve(false));
	});
}

function takesConnections(port: number): Promise<boolean> {
	return new Promise((resolve) => {
		const socket = net.connect({ host: "127.0.0.1", port }, () => {
			socket.destroy();
			resolve(true);
		});
		socket.once("error", () => resolve(false));
	});
}

/** nginx cannot say which port it was given: one that was free a moment ago. */
function freePort(): Promise<number> {
	return new Promise((resolve, reject) => {
		const server = net.createServer().once("error", reject);
		server.listen(0, "127.0.0.1", () => {
			const { port } = server.address() as AddressInfo;
			server.close(() => resolve(port));
		});
	});
}
