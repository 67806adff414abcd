import { type ErrorCode, KvasirError } from "../errors.ts";

/** What the system refuses that is no bug of ours: per errno the code it becomes, the same in words, and what helps. */
const known: Readonly<Record<string, readonly [code: ErrorCode, words: string, hint?: string]>> = {
	ENOENT: ["file_missing", "no such file or folder", "Check the path"],
	ENOTDIR: ["file_missing", "a part of the path is a file, not a folder", "Check the path"],
	EISDIR: ["bad_file", "it is a folder, not a file"],
	EEXIST: ["bad_file", "something else is there already"],
	ELOOP: ["bad_file", "its links lead in a circle"],
	ENAMETOOLONG: ["bad_file", "the name is too long"],
	EACCES: ["bad_file", "permission denied", "Check who owns it, and who may read and write there"],
	EPERM: ["bad_file", "not permitted", "Check who owns it, and who may read and write there"],
	EROFS: ["bad_file", "the file system is read-only", "Mount it writable, or write elsewhere: --home moves the home"],
	EIO: ["bad_file", "the disk cannot read or write it"],
	ENOSPC: ["disk_full", "the disk is full", "Free space, or move the home with --home"],
	EDQUOT: ["disk_full", "the disk quota is used up", "Free space, or move the home with --home"],
	EFBIG: ["disk_full", "the file would be too large"],
	ENOMEM: ["out_of_memory", "no memory left"],
	EMFILE: ["failed", "too many open files (ulimit -n)"],
	ENFILE: ["failed", "too many open files on this machine"],
	EAGAIN: ["failed", "no more processes or threads (ulimit -u)"],
	EADDRINUSE: ["network", "the port is in use"],
	ECONNREFUSED: ["refused", "nobody listens there"],
	ECONNRESET: ["closed", "the other side closed the connection"],
	ENOTFOUND: ["dns", "no such host name"],
};

/** An errno in words, or what the error says where it has none. */
export function systemErrorWords(thrown: unknown): string {
	const { code, message } = thrown as NodeJS.ErrnoException;
	return (code !== undefined && known[code]?.[1]) || code || message || String(thrown);
}

/**
 * What a system call threw as a typed error: `disk_full` for ENOSPC, `bad_file` for EACCES, and so on; null for anything else.
 *
 * @param action what was tried, such as "write the report"; the system call and its path where it is not said
 */
export function systemError(thrown: unknown, action?: string): KvasirError | null {
	if (!(thrown instanceof Error)) return null;
	const { code, syscall, path } = thrown as NodeJS.ErrnoException;
	const found = code === undefined ? undefined : known[code];
	if (found === undefined || syscall === undefined) return null;
	return new KvasirError(found[0], `Cannot ${action ?? [syscall, path].filter(Boolean).join(" ")}: ${found[1]}`, {
		cause: thrown,
		...(found[2] !== undefined && { hint: found[2] }),
		facts: { errno: code, ...(path !== undefined && { path }) },
	});
}
