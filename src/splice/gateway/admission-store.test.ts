import { afterAll, describe, expect, it } from "vitest";
import { databasesUnderTest } from "../../../test/support/databases.ts";
import { fakeClock } from "../../../test/support/fake-clock.ts";
import { seededRandom } from "../../../test/support/seeded-random.ts";
import { dialWorker, eventually, startSpliceSwarm, testKey } from "../../../test/support/splice-swarm.ts";
import { addressOf } from "../../io/base58.ts";
import { systemClock } from "../../io/clock.ts";
import { silentLog } from "../../io/log.ts";
import { spliceLimits } from "../limits.ts";
import { storedAdmission } from "./admission.ts";
import { type AdmissionStore, openAdmissionStore } from "./admission-store.ts";

const [alice, bob, carol] = [1, 2, 3].map((number) => addressOf(testKey(number).publicKey)) as [string, string, string];
const hour = 3_600_000;

describe.each(databasesUnderTest("admission"))("the admission store on $name", ({ location, skip, clean }) => {
	const stores: AdmissionStore[] = [];
	afterAll(async () => {
		for (const store of stores) await store.close();
		await clean();
	});
	async function open() {
		const clock = fakeClock();
		const at = await location();
		const store = await openAdmissionStore(at, { clock, random: seededRandom(stores.length + 1) });
		stores.push(store);
		return { store, clock, at };
	}

	it.skipIf(skip)("lets one key in by an invite, for good, and nobody else", async () => {
		const { store } = await open();
		const { code, id, state } = await store.createInvite({ validMs: hour, note: "for alice" });
		expect(state).toBe("open");
		expect(await store.admit(alice, undefined)).toEqual({ ok: false, reason: "invite_missing" });
		expect(await store.admit(alice, code)).toEqual({ ok: true });
		expect(await store.admit(alice, undefined)).toEqual({ ok: true });
		expect(await store.admit(bob, code)).toEqual({ ok: false, reason: "invite_used" });
		expect(await store.listInvites()).toMatchObject([{ id, state: "used", usedBy: alice, note: "for alice" }]);
	});

	it.skipIf(skip)("spends an invite once though two keys bring it at the same moment", async () => {
		const { store } = await open();
		const { code } = await store.createInvite({ validMs: hour });
		const checks = await Promise.all([alice, bob, carol].map((key) => store.admit(key, code)));
		expect(checks.filter(({ ok }) => ok)).toHaveLength(1);
	});

	it.skipIf(skip)("refuses invites that expired, were revoked, or never were", async () => {
		const { store, clock } = await open();
		const { code } = await store.createInvite({ validMs: hour });
		const revoked = await store.createInvite({ validMs: 10 * hour });
		expect(await store.revokeInvite(revoked.id)).toMatchObject({ state: "revoked" });
		await expect(store.revokeInvite(revoked.id)).rejects.toMatchObject({ code: "not_admitted" });
		await clock.advance(hour);
		expect(await store.admit(alice, code)).toEqual({ ok: false, reason: "invite_expired" });
		expect(await store.admit(alice, revoked.code)).toEqual({ ok: false, reason: "invite_unknown" });
		for (const bad of ["", "kvasir-invite-", "x".repeat(5_000), `${revoked.code}'`]) {
			expect(await store.admit(alice, bad)).toEqual({ ok: false, reason: "invite_unknown" });
		}
		await expect(store.createInvite({ validMs: 0 })).rejects.toMatchObject({ code: "usage" });
		await expect(store.createInvite({ validMs: Number.NaN })).rejects.toMatchObject({ code: "usage" });
	});

	it.skipIf(skip)("bans a key over everything else, and lets it in again", async () => {
		const { store } = await open();
		await store.allow(alice);
		await store.ban(alice, "wrong answers");
		await store.ban(alice);
		expect(await store.admit(alice, undefined)).toEqual({ ok: false, reason: "banned" });
		expect(await store.bannedOf([alice, bob])).toEqual([alice]);
		expect(await store.unban(alice)).toBe(true);
		expect(await store.unban(alice)).toBe(false);
		expect(await store.admit(alice, undefined)).toEqual({ ok: true });
		expect(await store.disallow(alice)).toBe(true);
		expect(await store.admit(alice, undefined)).toMatchObject({ ok: false });
		await expect(store.ban("no key")).rejects.toMatchObject({ code: "bad_key" });
	});

	it.skipIf(skip)("is shared by the gateway and the command beside it", async () => {
		const { store, at, clock } = await open();
		const beside = await openAdmissionStore(at, { clock, random: seededRandom(99) });
		const { code } = await beside.createInvite({ validMs: hour });
		expect(await store.admit(alice, code)).toEqual({ ok: true });
		await beside.ban(alice);
		expect(await store.isBanned(alice)).toBe(true);
		await beside.close();
	});
});

describe("a gateway's admission", () => {
	async function openMemory() {
		return openAdmissionStore(":memory:", { clock: systemClock, random: seededRandom(7) });
	}

	it("open: admits anybody but the banned, and cuts the live link of a key banned later", async () => {
		const store = await openMemory();
		await using swarm = await startSpliceSwarm({ gateway: { admission: storedAdmission("open", store, silentLog) } });
		const worker = await dialWorker(swarm.host);
		const closed = new Promise((resolve) => worker.once("close", resolve));
		worker.on("error", () => {});
		await store.ban(alice);
		await expect(dialWorker(swarm.host)).rejects.toMatchObject({ status: 403 });
		await closed;
		await eventually("the other side is gone too", () => swarm.backbone.sockets.size === 0);
		expect(spliceLimits.banSweepMs).toBeLessThanOrEqual(5_000);
	});

	it("allow-list: admits listed keys alone, invite: those who bring one", async () => {
		const store = await openMemory();
		await store.allow(alice);
		const identity = testKey(2);
		{
			await using swarm = await startSpliceSwarm({
				gateway: { admission: storedAdmission("allow-list", store, silentLog) },
			});
			const { code } = await store.createInvite({ validMs: hour });
			(await dialWorker(swarm.host)).terminate();
			const headers = { "X-Kvasir-Invite": code };
			await expect(dialWorker(swarm.host, { identity, headers })).rejects.toMatchObject({ status: 403 });
		}
		await using swarm = await startSpliceSwarm({ gateway: { admission: storedAdmission("invite", store, silentLog) } });
		await expect(dialWorker(swarm.host, { identity })).rejects.toMatchObject({ status: 403 });
		const { code } = await store.createInvite({ validMs: hour });
		(await dialWorker(swarm.host, { identity, headers: { "X-Kvasir-Invite": code } })).terminate();
		expect(JSON.stringify(swarm.backbone.requests.at(-1)!.headers)).not.toContain(code);
		(await dialWorker(swarm.host, { identity })).terminate();
	});

	it("lets nobody new in while its store cannot be read, and says to come back", async () => {
		const store = await openMemory();
		await store.close();
		await using swarm = await startSpliceSwarm({ gateway: { admission: storedAdmission("open", store, silentLog) } });
		await expect(dialWorker(swarm.host)).rejects.toMatchObject({ status: 503 });
	});
});
