import { execFileSync, spawn } from "node:child_process";
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import pg from "pg";

/** A kind of database that a suite runs on. */
export interface DatabaseUnderTest {
	readonly name: string;
	/** True where this machine has no such server; the suite's tests then show as skipped. */
	readonly skip: boolean;
	/** The location of a new, empty database (on PostgreSQL a schema of its own). */
	location(): Promise<string>;
	/** Ends the server and removes its files. */
	clean(): Promise<void>;
}

/** SQLite in a temporary folder, and a PostgreSQL server of its own where the binaries are installed. */
export function databasesUnderTest(purpose: string): readonly DatabaseUnderTest[] {
	return [sqlite(purpose), postgres(purpose)];
}

function sqlite(purpose: string): DatabaseUnderTest {
	let folder: string | null = null;
	let count = 0;
	return {
		name: "SQLite",
		skip: false,
		async location() {
			folder ??= mkdtempSync(join(tmpdir(), `kvasir-${purpose}-`));
			return join(folder, `${count++}.db`);
		},
		async clean() {
			if (folder !== null) rmSync(folder, { recursive: true, force: true });
		},
	};
}

function postgres(purpose: string): DatabaseUnderTest {
	const binaries = binaryFolder();
	let server: Promise<PostgresServer> | null = null;
	let count = 0;
	return {
		name: "PostgreSQL",
		skip: binaries === null,
		async location() {
			server ??= startPostgres(binaries!, purpose);
			const { url, query } = await server;
			const schema = `store_${count++}`;
			await query(`create schema ${schema}`);
			return `${url}&options=${encodeURIComponent(`-c search_path=${schema}`)}`;
		},
		async clean() {
			if (server !== null) await (await server).stop();
		},
	};
}

interface PostgresServer {
	readonly url: string;
	query(text: string): Promise<unknown>;
	stop(): Promise<void>;
}

async function startPostgres(binaries: string, purpose: string): Promise<PostgresServer> {
	const folder = mkdtempSync(join(tmpdir(), `kvasir-${purpose}-pg-`));
	const user = unprivileged();
	if (user.uid !== undefined) chownSync(folder, user.uid, user.gid!);
	const env = { PATH: `${binaries}${delimiter}${process.env.PATH}`, PGUSER: "kvasir", LC_ALL: "C" };
	const run = (program: string, args: readonly string[]) =>
		void execFileSync(join(binaries, program), args, { ...user, env, cwd: folder, stdio: "pipe" });
	const data = join(folder, "data");
	run("initdb", ["-D", data, "-U", "kvasir", "-A", "trust", "-E", "UTF8", "--no-sync"]);
	// The shell holds the server until its stdin ends: with this process, however that ends.
	const script = 'postgres -F -D data -k "$PWD" -c listen_addresses= >log 2>&1 & cat >/dev/null; kill -INT $!; wait $!';
	const shell = spawn("sh", ["-c", script], { ...user, env, cwd: folder, stdio: ["pipe", "ignore", "ignore"] });
	const ended = new Promise((resolve) => shell.once("exit", resolve));
	const deadline = performance.now() + 50_000;
	for (;;) {
		try {
			run("pg_isready", ["-q", "-h", folder]);
			break;
		} catch (error) {
			if (performance.now() > deadline) throw error;
			await new Promise((resolve) => setTimeout(resolve, 50));
		}
	}
	const url = `postgres:///postgres?host=${encodeURIComponent(folder)}&user=kvasir`;
	const client = new pg.Client({ connectionString: url });
	await client.connect();
	return {
		url,
		query: (text) => client.query(text),
		async stop() {
			await client.end();
			shell.stdin!.end();
			await ended;
			rmSync(folder, { recursive: true, force: true });
		},
	};
}

/** PostgreSQL refuses to run as root. */
function unprivileged(): { uid?: number; gid?: number } {
	if (process.getuid?.() !== 0) return {};
	for (const name of ["postgres", "nobody"]) {
		try {
			const id = (flag: string) => Number(execFileSync("id", [flag, name], { encoding: "utf8", stdio: "pipe" }));
			return { uid: id("-u"), gid: id("-g") };
		} catch {}
	}
	return {};
}

function binaryFolder(): string | null {
	const debian = "/usr/lib/postgresql";
	const versions = existsSync(debian) ? readdirSync(debian).map((version) => join(debian, version, "bin")) : [];
	const folders = [...versions, ...(process.env.PATH ?? "").split(delimiter)];
	return folders.find((folder) => existsSync(join(folder, "initdb")) && existsSync(join(folder, "postgres"))) ?? null;
}
