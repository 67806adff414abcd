import { KvasirError } from "../errors.ts";

// Money is nano-KVR in bigint everywhere; text only here, at the edge.

const nanoPerKvr = 1_000_000_000n;

/** Nano-KVR as KVR, exactly: 8945664n -> "0.008945664". */
export function kvrText(nano: bigint): string {
	return decimalText(nano, 9);
}

/** Millionths of a nano-KVR as KVR, exactly: 8945664000001n -> "0.008945664000001". */
export function exactKvrText(millionths: bigint): string {
	return decimalText(millionths, 15);
}

/** KVR rounded to five decimals for a screen: 8945664n -> "0.00895"; an amount too small for that says so. */
export function shortKvr(nano: bigint): string {
	const rounded = (nano + 5_000n) / 10_000n;
	if (rounded === 0n && nano > 0n) return "<0.00001";
	return decimalText(rounded, 5);
}

/** Served bytes as units of work, exactly: 1277952n -> "1.277952". */
export function unitsText(bytes: bigint): string {
	return decimalText(bytes, 6);
}

/** The nano-KVR of a decimal such as "0.5". Throws `usage`. */
export function parseKvr(text: string): bigint {
	const match = /^(\d{1,10})(?:\.(\d{1,9}))?$/.exec(text.trim());
	if (match === null) {
		throw new KvasirError("usage", `Cannot read the amount "${text}": not a decimal number of KVR`, {
			hint: "At most nine decimals, such as 0.5",
		});
	}
	return BigInt(match[1]!) * nanoPerKvr + BigInt((match[2] ?? "").padEnd(9, "0"));
}

function decimalText(value: bigint, decimals: number): string {
	const sign = value < 0n ? "-" : "";
	const digits = String(value < 0n ? -value : value).padStart(decimals + 1, "0");
	const fraction = digits.slice(-decimals).replace(/0+$/, "");
	return `${sign}${digits.slice(0, -decimals)}${fraction === "" ? "" : `.${fraction}`}`;
}
