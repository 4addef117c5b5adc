#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# run_tests.sh PROGRAM...: run the programs, print one KTAP document. Exit 1 if any failed, else 0.
# PROGRAMS=DIR is where the compiled ones are, by default next to this script.

here=$(cd "$(dirname "$0")" && pwd)
PROGRAMS=$(cd "${PROGRAMS:-$here}" && pwd)
export PROGRAMS
. "$here/nested.sh"

passed=0 failed=0 skipped=0 test_number=0
printf 'KTAP version 1\n1..%s\n' $#
for program in "$@"; do
	test_number=$((test_number + 1))
	directory=$PROGRAMS
	[ -x "$here/$program" ] && directory=$here
	run_nested $test_number "$program" "$directory/$program"
	case $? in
	0) passed=$((passed + 1)) ;;
	4) skipped=$((skipped + 1)) ;;
	*) failed=$((failed + 1)) ;;
	esac
done
printf '# Totals: pass:%s fail:%s xfail:0 xpass:0 skip:%s error:0\n' $passed $failed $skipped
[ $failed -eq 0 ]
