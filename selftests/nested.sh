# SPDX-License-Identifier: GPL-2.0-only
# Sourced: run KTAP programs as subtests. POSIX sh, busybox is enough.

# Indent standard input line by line, so that a run that hangs has shown all it said.
indent()
{
	while IFS= read -r line; do
		printf '  %s\n' "$line"
	done
}

# print_result NUMBER NAME STATUS: the result line for a kselftest exit status.
print_result()
{
	case $3 in
	0) printf 'ok %s %s\n' "$1" "$2" ;;
	4) printf 'ok %s %s # SKIP\n' "$1" "$2" ;;
	*) printf 'not ok %s %s # exit=%s\n' "$1" "$2" "$3" ;;
	esac
}

# run_nested NUMBER NAME COMMAND...: print the output of the command as a subtest and its result
# line. Returns its exit status.
run_nested()
{
	number=$1
	name=$2
	shift 2
	printf '# selftests: %s\n' "$name"
	# A pipeline has the status of its last command: that of the first goes by descriptor 3.
	{
		status=$({ { "$@" 3>&- 4>&-; echo $? >&3; } | indent >&4; } 3>&1)
	} 4>&1
	print_result "$number" "$name" "$status"
	return "$status"
}
