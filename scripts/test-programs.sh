#!/usr/bin/env bash
# Installs the Debian programs that some tests run against: nginx, tinyproxy, PostgreSQL, iproute2, openssl, and qemu for arm64.
# Where that cannot be (no root, not Debian, no packages), those tests say that they were skipped.
set -u
declare -A packages=(
	[nginx]=nginx-light
	[tinyproxy]=tinyproxy
	[postgres]=postgresql
	[ip]=iproute2
	[openssl]=openssl
	[qemu-aarch64]="qemu-user libc6-arm64-cross libstdc++6-arm64-cross"
)
missing=()
for program in "${!packages[@]}"; do
	command -v "$program" >/dev/null || compgen -G "/usr/lib/postgresql/*/bin/$program" >/dev/null || missing+=(${packages[$program]})
done
[ ${#missing[@]} -eq 0 ] && exit 0
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
	echo "Not installed, their tests are skipped: ${missing[*]}"
	exit 0
fi
export DEBIAN_FRONTEND=noninteractive
install() { apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null 2>&1; }
# A package's service must not start: the tests start what they need, on ports of their own.
policy=/usr/sbin/policy-rc.d
if [ ! -e $policy ]; then
	printf '#!/bin/sh\nexit 101\n' >$policy && chmod +x $policy
	trap 'rm -f $policy' EXIT
fi
install || { apt-get update -qq >/dev/null 2>&1; install; } || echo "Not all could be installed: ${missing[*]}"
exit 0
