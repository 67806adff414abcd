import { describe, expect, it } from "vitest";
import { addressOf } from "../../io/base58.ts";
import {
	address,
	byteSize,
	count,
	decimal,
	formatHostPort,
	gpuDevice,
	heldRange,
	hostPort,
	layers,
} from "./readers.ts";

describe("readers", () => {
	it.each([
		["127.0.0.1:0", { host: "127.0.0.1", port: 0 }],
		[":443", { host: null, port: 443 }],
		["[::1]:7301", { host: "::1", port: 7301 }],
		["hub.lan:7301", { host: "hub.lan", port: 7301 }],
		["hub.lan", undefined],
		["hub.lan:70000", undefined],
		["::1:7301", undefined],
		["[127.0.0.1]:1", undefined],
		["a b:1", undefined],
	])("hostPort reads %j", (text, expected) => {
		expect(hostPort.read(text)).toEqual(expected);
		if (expected?.host) expect(formatHostPort(expected)).toBe(text);
	});

	it.each([
		["12GiB", 12 * 2 ** 30],
		["512M", 2 ** 29],
		["1.5 GB", 1.5 * 2 ** 30],
		["4096", 4096],
		["0", undefined],
		["-1", undefined],
		["12 apples", undefined],
		["99999999999999999", undefined],
	])("byteSize reads %j", (text, expected) => expect(byteSize.read(text)).toBe(expected));

	it.each([
		["all", "all"],
		["none", []],
		["0,3", [0, 3]],
		["2-4,0", [0, 2, 3, 4]],
		["4-2", undefined],
		["1024", undefined],
		["", undefined],
		["a", undefined],
	])("layers reads %j", (text, expected) => expect(layers.read(text)).toEqual(expected));

	it("devices and held experts are refused when they are typed, not once a backbone has been found", () => {
		for (const text of ["", "auto", "webgpu", "webgpu:0x10de", "cuda"]) expect(gpuDevice.read(text)).toBe(text);
		for (const text of ["foo", "webgpu:", "cuda:1", "Auto"]) expect(gpuDevice.read(text)).toBeUndefined();
		for (const text of ["all:0-7", "0,2-4:3", "0-5:all"]) expect(heldRange.read(text)).toBe(text);
		for (const text of ["", "0", "0:", ":0", "0:9-1", "3-1:0", "a:0", "0:0,1", "0:0:0", "-1:0"]) {
			expect(heldRange.read(text), text).toBeUndefined();
		}
	});

	it("numbers keep to their bounds", () => {
		expect(count(1, 8).read("8")).toBe(8);
		for (const text of ["0", "9", "1.5", "-1", "", "1e3", "0x1"]) expect(count(1, 8).read(text)).toBeUndefined();
		expect(decimal(0, 2).read("0.7")).toBe(0.7);
		for (const text of ["2.1", "-0.1", "NaN", ".5"]) expect(decimal(0, 2).read(text)).toBeUndefined();
	});

	it("address takes 32 bytes in base58 and nothing else", () => {
		const good = addressOf(new Uint8Array(32).fill(7));
		expect(address.read(good)).toBe(good);
		for (const text of ["", "0OIl", addressOf(new Uint8Array(31))]) expect(address.read(text)).toBeUndefined();
	});
});
