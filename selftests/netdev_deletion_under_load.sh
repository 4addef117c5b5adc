#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Delete network devices on the last CPU, first with CPU 0 idle, then while NAPI keeps it busy.
#
#   netdev_deletion_under_load.sh [SECONDS [BOUND_MS]]
#
# PROGRAMS=DIR is where the compiled programs are, by default next to this script.

here=$(cd "$(dirname "$0")" && pwd)
programs=${PROGRAMS:-$here}
. "$here/nested.sh"

seconds=${1:-5}
bound_ms=${2:-1000}
case $seconds$bound_ms in
*[!0-9]*)
	echo "$0: SECONDS and BOUND_MS are whole numbers" >&2
	exit 2
	;;
esac
if [ "$(id -u)" != 0 ]; then
	printf 'KTAP version 1\n1..0 # SKIP must be run as root\n'
	exit 4
fi

# count STATUS: note an exit status for our own.
failed=0 skipped=0
count()
{
	case $1 in
	0) ;;
	4) skipped=1 ;;
	*) failed=1 ;;
	esac
}

work=$(mktemp -d) || exit 1
load='' deletion=''
trap 'kill $load $deletion 2>/dev/null; rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
trap '' PIPE

# wait_for PID FILE PATTERN: until the line is there; false if the process ends without it.
wait_for()
{
	while ! grep -qs "$3" "$2"; do
		kill -0 "$1" 2>/dev/null || return
		sleep 1
	done
}

# finish NUMBER NAME PID FILE: wait for a program and print its output as a subtest.
finish()
{
	wait "$3"
	status=$?
	printf '# selftests: %s\n' "$2"
	indent <"$4"
	print_result "$1" "$2" $status
	count $status
}

printf 'KTAP version 1\n1..3\n'
run_nested 1 deletion_idle "$programs/netdev_deletion" --seconds "$seconds" --bound-ms "$bound_ms"
count $?

# Probes before load: arming them waits for the same things as the deletion. A line on the
# program's input, descriptor 5 here, is its word to begin; the end of it calls off the rest.
mkfifo "$work/start"
"$programs/netdev_deletion" --stdin-start --seconds "$seconds" --bound-ms "$bound_ms" \
	<"$work/start" >"$work/deletion" &
deletion=$!
exec 5>"$work/start"
wait_for $deletion "$work/deletion" '^# armed'

# A deletion that the load blocks for good lasts as long as the load: keep that short.
"$programs/napi_reentry" --seconds $((seconds + 10)) >"$work/load" 5>&- &
load=$!
if wait_for $load "$work/load" '^# ready'; then
	# No reader means that the program has ended: its exit status says why.
	echo >&5 2>/dev/null
	exec 5>&-
	finish 2 deletion_loaded $deletion "$work/deletion"
	kill $load 2>/dev/null
else
	exec 5>&-
	wait $deletion
	echo 'ok 2 deletion_loaded # SKIP no load'
fi
deletion=''
finish 3 load $load "$work/load"
load=''

[ $failed -eq 0 ] || exit 1
[ $skipped -eq 0 ] || exit 4
