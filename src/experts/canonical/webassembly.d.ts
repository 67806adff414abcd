// The part of WebAssembly's interface that Kvasir uses; TypeScript has it only in its browser library.
declare namespace WebAssembly {
	class Module {
		constructor(bytes: Uint8Array);
	}
	class Instance {
		constructor(module: Module, imports: Record<string, Record<string, unknown>>);
		readonly exports: Record<string, unknown>;
	}
	class Memory {
		constructor(options: { initial: number; maximum: number; shared: true });
		readonly buffer: SharedArrayBuffer;
	}
}
