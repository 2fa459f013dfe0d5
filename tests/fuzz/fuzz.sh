#!/usr/bin/env bash
# Runs the fuzzers named, one after the other, FUZZ_SECONDS each (600), on copies of their corpora that grow in
# build/fuzz/work/<what>/corpus and are begun with again. `make fuzz` builds them and calls this.
#
# FUZZ_JOBS processes share a target's corpus; the default is the number of processors. A finding stops its
# target: the input is kept in build/fuzz/work/<what>/found, and the exit code is 1.
#
#     fuzz.sh --keep call npy     puts into the tree what a target's corpus needs to reach all that it reached,
#                                 beside the files that are there
set -u
cd "$(dirname "$0")/../.." || exit 2
seconds=${FUZZ_SECONDS:-600}
jobs=${FUZZ_JOBS:-$(nproc)}
work=build/fuzz/work
export UBSAN_OPTIONS=print_stacktrace=1

keep=no
if [ "${1:-}" = --keep ]; then
    keep=yes
    shift
fi
if [ $# -eq 0 ]; then
    echo 'fuzz: name targets' >&2
    exit 2
fi

seed() { # WHAT FOLDER: what the tree has goes there
    local case
    cp tests/fuzz/corpus/"$1"/* "$2/"
    [ "$1" = call ] || return
    for case in tests/cases/*/*/; do
        cp "${case}request" "$2/case_$(echo "${case#tests/cases/}" | tr / _)"
    done
}

# Long inputs are rarely worth their time.
options() { # WHAT
    local longest=1024
    [ "$1" != call ] || longest=4096
    echo -timeout=10 -rss_limit_mb=1024 -max_len=$longest
    [ ! -e "tests/fuzz/dict/$1.dict" ] || echo "-dict=tests/fuzz/dict/$1.dict"
}

fuzz() { # WHAT
    local what=$1 before after found
    mkdir -p "$work/$what/corpus" "$work/$what/found"
    seed "$what" "$work/$what/corpus"
    echo "fuzz $what: $seconds s, log in $work/$what/log"
    before=$(find "$work/$what/found" -type f | sort)
    # shellcheck disable=SC2046 # a list of options
    nice "build/fuzz/fuzz-$what" $(options "$what") -fork="$jobs" -max_total_time="$seconds" \
        -artifact_prefix="$work/$what/found/" "$work/$what/corpus" >"$work/$what/log" 2>&1
    local result=$?
    grep -o '^#[0-9]*: cov: [0-9]* ft: [0-9]* corp: [0-9]*' "$work/$what/log" | tail -n 1
    after=$(find "$work/$what/found" -type f | sort)
    found=$(comm -13 <(echo "$before") <(echo "$after") | grep .)
    if [ "$result" -eq 0 ] && [ -z "$found" ]; then
        return 0
    fi
    grep -E -A3 'broken: |ERROR: |runtime error: ' "$work/$what/log" | head -n 20
    for file in $(echo "$found" | head -n 3); do
        echo "FOUND $file"
        echo "    replay it with: build/fuzz/fuzz-$what $file"
        echo "    keep it with: cp $file tests/fuzz/corpus/$what/A_SPEAKING_NAME"
    done
    return 1
}

# A merge takes what reaches branches that nothing before it does, the files of the tree first; without counters,
# as how often a branch is taken would keep ten times as many.
keep() { # WHAT
    local what=$1 more=$work/$1/more file name
    rm -rf "$more"
    mkdir -p "$more" "$work/$what/found"
    seed "$what" "$more"
    # shellcheck disable=SC2046
    nice "build/fuzz/fuzz-$what" $(options "$what") -artifact_prefix="$work/$what/found/" -use_counters=0 \
        -set_cover_merge=1 "$more" "$work/$what/corpus" >"$work/$what/log" 2>&1 || return 1
    for file in "$more"/*; do # new ones are named by their SHA-1
        name=${file##*/}
        [ ${#name} -ne 40 ] || cp "$file" "tests/fuzz/corpus/$what/found_${name:0:12}"
    done
    find "tests/fuzz/corpus/$what" -type f | wc -l
}

result=0
for what in "$@"; do
    if [ $keep = yes ]; then
        keep "$what" || result=1
    else
        fuzz "$what" || result=1
    fi
done
exit $result
