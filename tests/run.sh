#!/usr/bin/env bash
# All tests but the image's: one line per stage with its counts and time, the end of its output where it failed,
# and the sum at the end. `run.sh unit-asan http` runs only those stages.
#
# A stage builds what it needs and prints, as its last word on the matter, `N passed, N failed` or libcheck's
# `Checks: N, Failures: N, Errors: N`; a program that prints neither counts as one test. What this machine cannot
# try is a line `skip NAME reason`, and counts as neither.
set -u
cd "$(dirname "$0")/.." || exit 2
python=/usr/bin/python3
passed=0 failed=0 skipped=0 began=$SECONDS
mkdir -p build/log
export UBSAN_OPTIONS=print_stacktrace=1

build() { # FLAVOUR TARGET...
    local flavour=$1
    shift
    make --no-print-directory FLAVOUR="$flavour" "$@"
}

# One process per module, as many at a time as there are processors. Sanitizers make tests slower, and libcheck's
# limit is one of wall time. The address sanitizer's process for each test takes longer to make, and to look through for
# leaks, than most tests: it has one for all tests of a module. What then ends one test ends its module, which fails, as
# one does that never ends.
unit() { # FLAVOUR [SUITE...]
    local flavour=$1 binary=build/$1/unit fork=yes
    shift
    [ "$flavour" = asan ] && fork=no
    build "$flavour" unit || return 1
    { if [ $# -gt 0 ]; then printf '%s\n' "$@"; else "$binary" --list; fi; } |
        CK_FORK=$fork CK_VERBOSITY=normal CK_TIMEOUT_MULTIPLIER=10 xargs -P"$(nproc)" -n1 timeout 900 "$binary"
}

stage_unit() { unit release; }
stage_unit-asan() { unit asan; }
stage_unit-portable() { unit portable; }

# Only what starts threads is worth the thread sanitizer's time.
stage_unit-tsan() {
    local suites
    suites=$(grep -l 'pthread\|tsan' tests/{unit,faults}/check_*.c 2>/dev/null | sed 's|.*/check_||; s|\.c$||')
    [ -n "$suites" ] || return 77
    # shellcheck disable=SC2086 # a list of words
    unit tsan $suites
}

# What calls kernels without asking for an instruction set (the suites of the kernels themselves try all of them), as
# on processors that have less than this one.
stage_sets() {
    local set result=0
    for set in plain avx2; do
        echo "PE_INSTRUCTIONS=$set"
        PE_INSTRUCTIONS=$set unit release alibi apply attention block call_bits cases cope deberta fourier golden lift \
            rope rotary rotary_attention shaw shift similarity sinusoidal transformer_xl || result=1
        PE_INSTRUCTIONS=$set unit asan apply attention block lift rotary shaw sinusoidal || result=1
        CK_RUN_CASE=threads PE_INSTRUCTIONS=$set unit tsan call_bits || result=1
    done
    return $result
}

stage_exact() {
    [ -e tests/exact/exact.c ] || return 77
    build release build/release/exact && build/release/exact
}

# The other printer of floats is C++.
stage_digits() {
    command -v "${CXX:-g++}" >/dev/null 2>&1 || return 77
    build release build/release/digits && build/release/digits
}

http() { # FLAVOUR: the black-box tests tests/http/*.py, each given the daemon (_*.py are their helpers)
    local script result=0
    ls tests/http/[!_]*.py >/dev/null 2>&1 || return 77
    build "$1" server load limited || return 1
    for script in tests/http/[!_]*.py; do
        counted timeout 900 "$python" "$script" "build/$1/posencd" && continue
        echo "$script: FAILED"
        result=1
    done
    return $result
}
stage_http() { http release; }
stage_http-asan() { http asan; }
stage_http-tsan() { http tsan; }

# The pages in a browser, one file of tests after the other: some measure time. Whoever has no node or browser is told
# that they are left out; where CI is set that is a failure.
stage_browser() {
    local file command result=0
    for command in node npm "${CHROMIUM:-chromium}"; do
        command -v "$command" >/dev/null 2>&1 && continue
        echo "skip browser $command is missing: the pages were not tried (.ci/setup web browser)"
        [ -z "${CI:-}" ] || echo "ERROR: in CI they have to be"
        return $((${#CI} > 0 ? 1 : 77))
    done
    build release server server/www/node_modules/.package-lock.json || return 1
    for file in tests/browser/*.test.mjs; do
        POSENCD=build/release/posencd timeout 600 node --test --test-reporter=./tests/browser/_report.mjs "$file" && continue
        echo "$file: FAILED"
        result=1
    done
    return $result
}

# The files of tests/fuzz/corpus through the targets of the fuzzers, with sanitizers, but without a fuzzer.
stage_fuzz() {
    local target what result=0
    build asan replays || return 1
    for target in tests/fuzz/fuzz_*.c; do
        what=$(basename "${target#*/fuzz_}" .c)
        if [ "$what" = call ]; then set -- tests/cases/*/*/request; else set --; fi
        "build/asan/replay-$what" "tests/fuzz/corpus/$what" "$@" || result=1
    done
    return $result
}

# What the unit tests reach, in a build that counts. Tests over HTTP reach more of the daemon; these are enough.
stage_cov() {
    find build/cov -name '*.gcda' -delete 2>/dev/null
    unit cov
    "$python" tests/rules/coverage.py build/cov
}

# Runs a command; its counts are in the log afterwards, whether it prints any or not.
counted() {
    local rc out
    out=$("$@" 2>&1)
    rc=$?
    printf '%s\n' "$out"
    case "$out" in
        *[0-9]" passed, "[0-9]*) ;;
        *) if [ $rc -eq 0 ]; then echo '1 passed, 0 failed'; else echo '0 passed, 1 failed'; fi ;;
    esac
    return $rc
}

# Sums all counts in a log: "GOOD BAD".
counts() {
    awk '
        match($0, /Checks: [0-9]+, Failures: [0-9]+, Errors: [0-9]+/) {
            split(substr($0, RSTART, RLENGTH), n, /[^0-9]+/); bad += n[3] + n[4]; good += n[2] - n[3] - n[4]
        }
        match($0, /[0-9]+ passed, [0-9]+ failed/) {
            split(substr($0, RSTART, RLENGTH), n, /[^0-9]+/); good += n[1]; bad += n[2]
        }
        END { print good + 0, bad + 0 }' "$1"
}

told() { # LOG: what could not be tried
    grep '^skip ' "$1" | sed 's/^/    /'
    skipped=$((skipped + $(grep -c '^skip ' "$1")))
}

run() { # STAGE
    local start=$SECONDS log="build/log/$1.log" rc good bad
    "stage_$1" >"$log" 2>&1 </dev/null
    rc=$?
    if [ $rc -eq 77 ]; then
        printf '%-14s nothing to run\n' "$1"
        told "$log"
        return
    fi
    read -r good bad < <(counts "$log")
    : "${good:=0}" "${bad:=1}"
    [ $rc -ne 0 ] && [ "$bad" -eq 0 ] && bad=1
    [ $rc -eq 0 ] && [ $((good + bad)) -eq 0 ] && good=1
    printf '%-14s %5d passed, %d failed %5d s\n' "$1" "$good" "$bad" $((SECONDS - start))
    if [ "$bad" -gt 0 ]; then
        grep -E '\bFAIL|:[FE]:|rror:|ERROR:|WARNING:|undefined reference|^make' "$log" | cut -c1-300 | head -n 30 | sed 's/^/    /'
        tail -n 5 "$log" | cut -c1-300 | sed 's/^/    ... /'
        echo "    (all of it: $log)"
    fi
    told "$log"
    passed=$((passed + good))
    failed=$((failed + bad))
}

[ $# -gt 0 ] || set -- unit exact digits http browser unit-asan fuzz http-asan unit-tsan http-tsan sets unit-portable cov
echo "stages: $* (each says nothing before its end; until then see build/log/STAGE.log)"
for stage in "$@"; do
    if ! declare -F "stage_$stage" >/dev/null; then
        echo "no stage \"$stage\"; there are $(declare -F | sed -n 's/.* stage_//p' | tr '\n' ' ')" >&2
        exit 2
    fi
    run "$stage"
done
[ "$skipped" -gt 0 ] && tail=", $skipped not tried"
echo "test: $passed passed, $failed failed${tail:-} in $((SECONDS - began)) s"
[ "$failed" -eq 0 ]
