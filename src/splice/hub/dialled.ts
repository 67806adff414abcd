import type { Clock } from "../../io/clock.ts";
import type { ListenAddress } from "../listener.ts";
import { dial } from "../outgoing.ts";
import type { BackboneSource } from "./parked.ts";

/** `--dispatch`: a backbone that listens, dialled anew for each worker. */
export function dialledBackbone(address: ListenAddress, clock: Clock): BackboneSource {
	return {
		async take({ model }, signal) {
			const socket = await dial(address, { clock, signal });
			return socket === null ? "none_parked" : { socket, backbone: "", model };
		},
	};
}
