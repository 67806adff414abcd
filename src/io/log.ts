/** What library code may say; pino fits it. Nothing is logged above debug on the path of a row. */
export interface Logger {
	debug(facts: object, message: string): void;
	info(facts: object, message: string): void;
	warn(facts: object, message: string): void;
	error(facts: object, message: string): void;
	child(bindings: Record<string, unknown>): Logger;
}

/** Says nothing. */
export const silentLog: Logger = {
	debug() {},
	info() {},
	warn() {},
	error() {},
	child: () => silentLog,
};
