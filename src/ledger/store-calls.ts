import { Worker } from "node:worker_threads";
import { type ErrorCode, KvasirError } from "../errors.ts";
import { armedFailpoints } from "../io/arm-failpoints.ts";
import { builtUrl } from "../io/built.ts";
import type { Location, OpenOptions } from "./database.ts";
import type { GatewayStoreOptions } from "./gateway-store.ts";

/** What a store's thread is started with. */
export type StoreThreadData = StoreKind & { readonly failpoints?: string | null };

type StoreKind =
	| { readonly kind: "hub"; readonly location: Location; readonly options: OpenOptions }
	| { readonly kind: "gateway"; readonly location: Location; readonly options: Omit<GatewayStoreOptions, "clock"> };

export interface StoreCall {
	readonly id: number;
	readonly method: string;
	readonly args: readonly unknown[];
}

export type StoreReply =
	| { readonly opened: string }
	| { readonly head: number }
	| { readonly id: number; readonly value: unknown }
	| {
			readonly id: number;
			readonly error: { readonly code: ErrorCode; readonly message: string; readonly hint?: string | undefined };
	  };

interface Pending {
	resolve(value: unknown): void;
	reject(error: unknown): void;
}

/** A store in a thread of its own: calls go in as messages and come back as promises. */
export class StoreThread {
	readonly #worker: Worker;
	readonly #pending = new Map<number, Pending>();
	readonly #onHead: (head: number) => void;
	#nextId = 1;
	#ended: KvasirError | null = null;

	private constructor(data: StoreThreadData, onHead: (head: number) => void) {
		this.#onHead = onHead;
		this.#worker = new Worker(builtUrl(import.meta.url, "./store-thread.js"), {
			workerData: { ...data, failpoints: armedFailpoints() } satisfies StoreThreadData,
		});
		this.#worker.on("message", (reply: StoreReply) => this.#settle(reply));
		this.#worker.on("error", (cause) =>
			this.#end(new KvasirError("ledger", `Cannot use the ledger: ${cause.message}`, { cause })),
		);
		this.#worker.on("exit", () => this.#end(new KvasirError("ledger", "Cannot use the ledger: it is closed")));
	}

	/** Starts the thread and waits for its store to be open. Throws what opening throws. */
	static async open(
		data: StoreThreadData,
		onHead: (head: number) => void = () => {},
	): Promise<{ thread: StoreThread; opened: string }> {
		const thread = new StoreThread(data, onHead);
		try {
			const opened = await new Promise((resolve, reject) => {
				thread.#pending.set(0, { resolve, reject });
			});
			return { thread, opened: opened as string };
		} catch (error) {
			await thread.#worker.terminate();
			throw error;
		}
	}

	call<T>(method: string, ...args: readonly unknown[]): Promise<T> {
		if (this.#ended !== null) return Promise.reject(this.#ended);
		const id = this.#nextId++;
		return new Promise<unknown>((resolve, reject) => {
			this.#pending.set(id, { resolve, reject });
			this.#worker.postMessage({ id, method, args } satisfies StoreCall);
		}) as Promise<T>;
	}

	/** Lets running calls finish, closes the store, ends the thread. */
	async close(): Promise<void> {
		if (this.#ended !== null) return;
		const exited = new Promise((resolve) => this.#worker.once("exit", resolve));
		await this.call("close");
		await exited;
	}

	#settle(reply: StoreReply): void {
		if ("head" in reply) {
			this.#onHead(reply.head);
			return;
		}
		const id = "opened" in reply ? 0 : reply.id;
		const pending = this.#pending.get(id);
		this.#pending.delete(id);
		if ("error" in reply) {
			const { code, message, hint } = reply.error;
			pending?.reject(new KvasirError(code, message, hint === undefined ? {} : { hint }));
		} else pending?.resolve("opened" in reply ? reply.opened : reply.value);
	}

	#end(error: KvasirError): void {
		this.#ended ??= error;
		for (const pending of this.#pending.values()) pending.reject(this.#ended);
		this.#pending.clear();
	}
}
