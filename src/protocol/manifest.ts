import { z } from "zod";
import { KvasirError } from "../errors.ts";
import { addressOf, keyOf } from "../io/base58.ts";
import { type KeyPair, sha256, verifySignature } from "../io/crypto.ts";
import { limits } from "./limits.ts";

// The list of a model's slices (wire.md section 5): which bytes every expert is made of. Two lines of JSON: the manifest, and who signed it.

/** One layer: the types and bytes of gate, up and down, and the SHA-256 of each expert's slice, 64 hexadecimal digits. */
export interface LayerSlices {
	readonly types: readonly [gate: string, up: string, down: string];
	readonly bytes: readonly [gate: number, up: number, down: number];
	readonly slices: readonly string[];
}

export interface Manifest {
	readonly version: 1;
	readonly name: string;
	/** Hexadecimal. */
	readonly modelId: string;
	readonly experts: number;
	readonly hidden: number;
	readonly expertWidth: number;
	readonly layers: readonly LayerSlices[];
}

/** A manifest as it travels, and the SHA-256 of its first line: what the signature and `assign` name. */
export interface SignedManifest {
	readonly manifest: Manifest;
	readonly digest: Uint8Array;
	readonly key: Uint8Array;
}

/** 1024 layers of 4096 experts would be four times this; 48 of 256 are 0.8 MB. */
export const manifestBytesMax = 64 * 2 ** 20;

const label = new TextEncoder().encode("kvasir/1 manifest");
const count = (most: number) => z.int().min(1).max(most);
const typeName = z.string().regex(/^[A-Z0-9_]{1,16}$/);
const matrixBytes = z
	.int()
	.min(1)
	.max(2 ** 40);
const manifestSchema = z.strictObject({
	version: z.literal(1),
	name: z.string().max(limits.textBytes),
	modelId: z.string().regex(/^[0-9a-f]{64}$/),
	experts: count(limits.experts),
	hidden: count(limits.hidden),
	expertWidth: count(limits.hidden),
	layers: z
		.array(
			z.strictObject({
				types: z.tuple([typeName, typeName, typeName]),
				bytes: z.tuple([matrixBytes, matrixBytes, matrixBytes]),
				slices: z.array(z.string().regex(/^[0-9a-f]{64}$/)).max(limits.experts),
			}),
		)
		.min(1)
		.max(limits.layers),
});
const signatureSchema = z.strictObject({ key: z.string().max(64), signature: z.string().max(128) });

/** The first line's text; the same manifest is always the same text. */
export function manifestText({ version, name, modelId, experts, hidden, expertWidth, layers }: Manifest): string {
	const ordered = layers.map(({ types, bytes, slices }) => ({ types, bytes, slices }));
	return JSON.stringify({ version, name, modelId, experts, hidden, expertWidth, layers: ordered });
}

/** SHA-256 of a manifest's text. */
export function manifestDigest(text: string): Uint8Array {
	return sha256(new TextEncoder().encode(text));
}

/** Both lines, signed. */
export function signManifest(text: string, identity: KeyPair): string {
	const signature = identity.sign(sha256(label, manifestDigest(text)));
	const signer = { key: addressOf(identity.publicKey), signature: Buffer.from(signature).toString("base64") };
	return `${text}\n${JSON.stringify(signer)}\n`;
}

/** Reads a manifest's text. Throws `malformed`. */
export function parseManifest(text: string): Manifest {
	try {
		const manifest = manifestSchema.parse(JSON.parse(text));
		if (manifest.layers.every(({ slices }) => slices.length === manifest.experts)) return manifest;
	} catch (cause) {
		throw malformed("not what a backbone writes", cause);
	}
	throw malformed("a layer does not list every expert");
}

/** Reads both lines and checks the signature; whether its key is to be believed is the caller's to say. Throws `malformed`, `auth`. */
export function openManifest(document: string): SignedManifest {
	const [text = "", signer = "", ...rest] = document.split("\n");
	if (rest.join("").trim() !== "") throw malformed("more than two lines");
	const manifest = parseManifest(text);
	const { key, signature } = readSigner(signer);
	const digest = manifestDigest(text);
	if (!verifySignature(key, sha256(label, digest), signature)) {
		throw new KvasirError("auth", "Cannot trust the manifest: its signature does not fit its key");
	}
	return { manifest, digest, key };
}

function readSigner(line: string): { key: Uint8Array; signature: Uint8Array } {
	try {
		const { key, signature } = signatureSchema.parse(JSON.parse(line));
		return { key: keyOf(key), signature: Buffer.from(signature, "base64") };
	} catch (cause) {
		throw malformed("it is not signed", cause);
	}
}

function malformed(state: string, cause?: unknown): KvasirError {
	return new KvasirError("malformed", `Cannot read the manifest: ${state}`, { cause });
}
