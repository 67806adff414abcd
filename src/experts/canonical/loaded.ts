import type { TensorType } from "../../model/weight-matrix.ts";
import type { Place } from "./arena.ts";

/** A matrix in panels: at which address of its memory. */
export interface LoadedMatrix {
	readonly type: TensorType;
	readonly inputs: number;
	readonly outputs: number;
	readonly at: number;
}

/** An expert in panels: its three matrices lie in one place. */
export interface LoadedExpert {
	readonly hidden: number;
	readonly width: number;
	readonly place: Place;
	readonly gate: LoadedMatrix;
	readonly up: LoadedMatrix;
	readonly down: LoadedMatrix;
}
