#!/usr/bin/env bash
# All checks of the source: one line each, what failed below it, and a count at the end. `lint.sh includes text`
# runs only those.
set -u
cd "$(dirname "$0")/../.." || exit 2
rules=tests/rules
python=/usr/bin/python3
jobs=$(nproc 2>/dev/null || echo 2)
passed=0 failed=0
log=$(mktemp)
trap 'rm -f "$log"' EXIT

files() { # PATTERN FOLDER...: the files below them with such a name
    local pattern=$1
    shift
    find "$@" -name node_modules -prune -o -type f -name "$pattern" -print | sort
}

check_format() { files '*.[ch]' lib server tests | xargs -r clang-format-14 --dry-run -Werror; }
# gcc really compiles, as some of its warnings come from the optimiser; clang's come from its front end.
check_gcc() { make -k --no-print-directory FLAVOUR=lint WERROR=1 CC=gcc objects build/lint/libposenc.so; }
check_clang() { make -k --no-print-directory FLAVOUR=lint WERROR=1 CC=clang syntax; }
check_includes() { "$python" "$rules/includes.py"; }
check_text() { "$python" "$rules/text.py"; }
check_symbols() { check_gcc && "$python" "$rules/symbols.py" build/lint; }
check_shape() { "$python" "$rules/shape.py"; }

# Each header stands alone, the public ones in other dialects than ours, too. One without an include guard is a
# template: its text is meant for several places.
check_headers() {
    local strict=(-D_POSIX_C_SOURCE=200809L -Wall -Wextra -Wpedantic -Wshadow -Werror -fsyntax-only -Ilib/include)
    local std
    for std in c99 c11 c17; do
        echo '#include "posenc.h"' | gcc -std=$std "${strict[@]}" -x c - || return 1
        # Behind headers whose macros are words: a program may have included them before.
        printf '#include <%s.h>\n' complex tgmath iso646 stdnoreturn | sed '$a #include "posenc.h"' |
            gcc -std=$std "${strict[@]}" -x c - || return 1
    done
    for std in c11 c17; do
        echo '#include "posenc_fields.h"' | gcc -std=$std "${strict[@]}" -x c - || return 1
    done
    echo '#include "posenc.h"' | clang++ -std=c++17 "${strict[@]}" -x c++ - || return 1
    files '*.h' lib server | xargs -r grep -l '^#ifndef .*_H$' | xargs -r -P"$jobs" -I{} sh -c \
        'echo "#include \"{}\"" | gcc -std=c17 "$@" -I. -Ilib -Iserver -x c - || exit 255' sh "${strict[@]}"
}

# Columns of pmccabe: 1 complexity, a switch counted once; 5 lines of the function.
check_functions() {
    files '*.c' lib server | xargs -r pmccabe | awk -v max_lines=70 -v max_paths=15 '
        $5 > max_lines { print $6, $7, $5 " lines, at most " max_lines " are allowed"; bad = 1 }
        $1 > max_paths { print $6, $7, "complexity " $1 ", at most " max_paths " is allowed"; bad = 1 }
        END { exit bad }'
}

check_scripts() { { files '*.sh' tests docker; echo .ci/run .ci/setup docker/rootfs docker/image-check; } | xargs -r shellcheck -e SC2317; }
check_python() {
    files '*.py' tests docker server | xargs -r "$python" -c 'import sys
for path in sys.argv[1:]: compile(open(path, encoding="utf-8").read(), path, "exec")'
}
check_json() {
    files '*.json' config tests docker | while read -r file; do
        "$python" -m json.tool "$file" /dev/null || { echo "$file"; false; } || return 1
    done
}

run() { # NAME
    local start=$SECONDS result=ok
    if "check_$1" >"$log" 2>&1; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        result=FAILED
    fi
    printf 'lint %-12s %-7s %3d s\n' "$1" "$result" $((SECONDS - start))
    if [ "$result" = FAILED ]; then
        grep -v '^  CC ' "$log" | head -n 60 | sed 's/^/    /'
    else
        grep '^warning: ' "$log" | sed 's/^/    /'
    fi
}

[ $# -gt 0 ] || set -- format gcc clang includes text symbols headers functions shape scripts python json
for name in "$@"; do
    run "$name"
done
echo "lint: $passed passed, $failed failed"
[ "$failed" -eq 0 ]
