import { Worker } from "node:worker_threads";
import { KvasirError } from "../../errors.ts";
import { builtUrl } from "../../io/built.ts";
import { control, type Failure } from "./job.ts";
import { Runner, type Shared } from "./runner.ts";

/** How many threads compute, and whether the caller's is one of them. */
export interface PoolOptions {
	/** Threads that compute, the caller's included when it takes part. */
	readonly threads: number;
	/** Whether the caller's thread computes too (it then waits for the others without returning to its event loop). */
	readonly inCaller: boolean;
}

interface Settle {
	readonly resolve: () => void;
	readonly reject: (error: unknown) => void;
}

/**
 * The threads of an engine. One job at a time, in the order of the calls; a job wakes all threads once.
 * Threads are let sleep in `Atomics.wait`, so that waking them costs a few microseconds.
 */
export class Pool {
	readonly #shared: Shared;
	readonly #threads: Worker[];
	readonly #own: Runner | null;
	/** Resolves when every thread runs: before that, a caller that takes part would wait for threads that may never come. */
	readonly started: Promise<void>;
	#start!: Settle;
	#starting: number;
	#previous: Promise<unknown> = Promise.resolve();
	#finished: Settle | null = null;
	#dead: KvasirError | null = null;
	#closed = false;

	constructor(shared: Shared, { threads, inCaller }: PoolOptions) {
		this.#shared = shared;
		this.#own = inCaller ? new Runner(shared, 0) : null;
		const others = inCaller ? threads - 1 : threads;
		this.#starting = others;
		this.started = new Promise((resolve, reject) => {
			this.#start = { resolve, reject };
			if (others === 0) resolve();
		});
		this.#threads = Array.from({ length: others }, (_, i) => this.#startThread(inCaller ? i + 1 : i));
	}

	#startThread(slot: number): Worker {
		const workerData = { shared: this.#shared, slot, announce: this.#own === null };
		const thread = new Worker(builtUrl(import.meta.url, "./compute-thread.js"), { workerData });
		thread.on("message", (message: { started: number } | { finished: number } | { crash: unknown }) => {
			if ("crash" in message) this.#die(message.crash);
			else if ("finished" in message) this.#finished?.resolve();
			else this.#countStarted(thread);
		});
		thread.on("error", (cause) => this.#die(cause));
		thread.on("exit", () => this.#die(null));
		return thread;
	}

	/** A thread that has started keeps the process alive only while a job runs. */
	#countStarted(thread: Worker): void {
		thread.unref();
		this.#starting--;
		if (this.#starting === 0) this.#start.resolve();
	}

	/**
	 * Runs a job: `post` describes it in the exchange, `collect` takes the answer out; both run when it is the job's turn.
	 * With the caller taking part everything happens before this returns.
	 */
	run<T>(post: () => void, collect: (failure: Failure) => T): Promise<T> {
		if (this.#own) return this.#runHere(this.#own, post, collect);
		const turn = this.#previous.then(() => this.#runElsewhere(post, collect));
		this.#previous = turn.catch(() => {});
		return turn;
	}

	async #runHere<T>(own: Runner, post: () => void, collect: (failure: Failure) => T): Promise<T> {
		this.#checkAlive();
		post();
		this.#wake();
		try {
			own.run();
		} finally {
			this.#waitForOthers();
		}
		return collect(Atomics.load(this.#shared.control, control.failure) as Failure);
	}

	#waitForOthers(): void {
		const { control: words } = this.#shared;
		for (let left = Atomics.load(words, control.running); left > 0; left = Atomics.load(words, control.running)) {
			Atomics.wait(words, control.running, left);
		}
	}

	async #runElsewhere<T>(post: () => void, collect: (failure: Failure) => T): Promise<T> {
		this.#checkAlive();
		post();
		const finished = new Promise<void>((resolve, reject) => {
			this.#finished = { resolve, reject };
		});
		for (const thread of this.#threads) thread.ref();
		this.#wake();
		try {
			await finished;
			this.#checkAlive();
			return collect(Atomics.load(this.#shared.control, control.failure) as Failure);
		} finally {
			this.#finished = null;
			for (const thread of this.#threads) thread.unref();
		}
	}

	#wake(): void {
		const { control: words } = this.#shared;
		Atomics.store(words, control.next, 0);
		Atomics.store(words, control.partials, 0);
		Atomics.store(words, control.failure, 0);
		Atomics.store(words, control.running, this.#threads.length);
		Atomics.add(words, control.generation, 1);
		Atomics.notify(words, control.generation);
	}

	#checkAlive(): void {
		if (this.#dead) throw this.#dead;
		if (this.#closed) throw new KvasirError("engine_failed", "Cannot compute: the engine is closed");
	}

	#die(cause: unknown): void {
		if (this.#closed) return;
		this.#dead ??= new KvasirError("engine_failed", "Cannot compute: a compute thread has ended", { cause });
		this.#start.reject(this.#dead);
		this.#finished?.reject(this.#dead);
	}

	/** Resolves when the jobs given so far are done, whatever came of them. */
	async settled(): Promise<void> {
		await this.#previous;
	}

	/** Waits for the jobs already given, then ends the threads. */
	async close(): Promise<void> {
		if (this.#closed) return;
		await this.#previous;
		this.#closed = true;
		Atomics.store(this.#shared.control, control.stop, 1);
		this.#wake();
		await Promise.all(this.#threads.map((thread) => thread.terminate()));
	}
}
