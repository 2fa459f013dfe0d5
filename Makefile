# posenc: build, run, test. `make help` lists the targets.
#
# One file, no recursion into folders: sources are globs, every flavour has its own tree build/<flavour>/, and
# objects are made again when their flags change. Needs a C17 compiler, GNU make, libmicrohttpd, jansson, zlib,
# libpng and OpenBLAS; `make run`, `make test` and the like install what they miss on Debian (.ci/setup), `make` nothing.

FLAVOUR ?= release
WERROR ?= 0
PREFIX ?= /usr/local
DESTDIR ?=
PYTHON := /usr/bin/python3
B := build/$(FLAVOUR)
VERSION := $(shell sed -n 's/^\#define PE_VERSION *"\(.*\)"/\1/p' lib/include/posenc.h)
ifeq ($(MAKELEVEL),0)
MAKEFLAGS += -j$(shell nproc 2>/dev/null || echo 2)
endif

# ---- Flags ---------------------------------------------------------------------------------------------------
# No contraction: all compilers and instruction sets then give the same bits. Kernels are compiled with -O3, as
# gcc leaves most of their loops scalar below it.
WARN := -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes -Wvla \
        -Wcast-qual -Wwrite-strings -Wundef -Wformat=2
DIALECT := -std=c17 -D_POSIX_C_SOURCE=200809L -ffp-contract=off -fvisibility=hidden -fPIC -pthread
OPT_release := -O2 -g
OPT_lint := -O2
OPT_portable := -O2 -g -DPE_PORTABLE -U__SIZEOF_INT128__
OPT_asan := -O1 -g -fsanitize=address,undefined,float-divide-by-zero,float-cast-overflow \
            -fno-sanitize-recover=all -fno-omit-frame-pointer
OPT_fuzz := -O1 -g -fsanitize=fuzzer-no-link,address,undefined,float-divide-by-zero,float-cast-overflow \
            -fno-sanitize-recover=all -fno-omit-frame-pointer
OPT_tsan := -O1 -g -fsanitize=thread -fno-omit-frame-pointer
OPT_cov := -O0 -g --coverage
OPT := $(OPT_$(FLAVOUR))
ifeq ($(OPT),)
$(error FLAVOUR=$(FLAVOUR) is unknown: release, asan, tsan, cov, portable, fuzz, lint)
endif
ifeq ($(FLAVOUR),fuzz)
CC := clang
endif
ifneq ($(filter release lint portable,$(FLAVOUR)),)
KERNEL_OPT := -O3
endif
KERNELS := lib/kernels/% lib/core/tensor.c # what runs over whole tensors
ifeq ($(WERROR),1)
WARN += -Werror
endif

# OpenBLAS in its pthread flavour, named by its own folder: with several flavours installed, the default one
# may be OpenMP, which does not go together with a pool of threads.
BLAS_INC := $(firstword $(wildcard /usr/include/*/openblas-pthread))
BLAS_LIB := $(firstword $(wildcard /usr/lib/*/openblas-pthread))
ifneq ($(and $(BLAS_INC),$(BLAS_LIB)),)
BLAS_CFLAGS := -isystem $(BLAS_INC)
BLAS_LIBS := -L$(BLAS_LIB) -lopenblas
else
BLAS_CFLAGS := $(shell pkg-config --cflags openblas 2>/dev/null)
BLAS_LIBS := $(or $(shell pkg-config --libs openblas 2>/dev/null),-lopenblas)
endif
LIB_LIBS = $(BLAS_LIBS) -lm
SERVER_LIBS = -lmicrohttpd -ljansson -lpng -lz $(LIB_LIBS)
CHECK_LIBS = $(or $(shell pkg-config --libs check 2>/dev/null),-lcheck -lsubunit -lrt)

COMPILE = $(CC) $(DIALECT) $(WARN) $(OPT) $(CPPFLAGS) $(CFLAGS)
LINK = $(CC) -pthread -Wl,--as-needed $(OPT) $(CFLAGS) $(LDFLAGS)
# The server sees the library's public headers only; tests see everything.
INC_lib := -Ilib/include -Ilib $(BLAS_CFLAGS)
INC_server := -Ilib/include -Iserver
INC_build := $(INC_server)
INC_tests := -Ilib/include -Ilib -Iserver -Itests

# ---- Sources -------------------------------------------------------------------------------------------------
LIB_SRC := $(wildcard $(patsubst %,lib/%/*.c,core kernels encodings ops formats))
SERVER_SRC := $(filter-out server/main.c,$(wildcard server/*.c server/*/*.c))
MAIN_SRC := $(wildcard server/main.c)
UNIT_SRC := $(wildcard tests/*.c tests/unit/*.c tests/properties/*.c tests/faults/*.c)
HEADERS := $(wildcard lib/include/*.h lib/*/*.h server/*.h server/*/*.h)
LIB_OBJ := $(LIB_SRC:%.c=$(B)/%.o)
SERVER_OBJ := $(SERVER_SRC:%.c=$(B)/%.o) $(B)/config/presets.o $(B)/build/site.o $(B)/build/site.bin.o
MAIN_OBJ := $(MAIN_SRC:%.c=$(B)/%.o)
UNIT_OBJ := $(UNIT_SRC:%.c=$(B)/%.o)
OBJ := $(LIB_OBJ) $(SERVER_OBJ) $(MAIN_OBJ) $(UNIT_OBJ)
FUZZ_SRC := $(wildcard tests/fuzz/*.c)
FUZZ := $(patsubst tests/fuzz/fuzz_%.c,%,$(filter tests/fuzz/fuzz_%,$(FUZZ_SRC)))
TOOL_SRC := $(wildcard tests/exact/*.c tests/bench/*.c tests/digits/*.c tests/load/*.c) $(FUZZ_SRC)

# ---- Build ---------------------------------------------------------------------------------------------------
.DEFAULT_GOAL := all
all: lib server                 ## build the library and the daemon (FLAVOUR=release, asan, tsan, cov, portable)

ifeq ($(FLAVOUR),release)
lib: build/libposenc.a build/libposenc.so       ## build only the library
server: $(if $(MAIN_SRC),build/posencd)         ## build only the daemon
else
lib: $(B)/libposenc.a
server: $(if $(MAIN_SRC),$(B)/posencd)
endif
unit: $(B)/unit
objects: $(OBJ) $(TOOL_SRC:%.c=$(B)/%.o)

build/libposenc.a build/posencd: build/%: build/release/%
	@ln -sfn release/$* $@
build/libposenc.so: build/release/libposenc.so
	@ln -sfn release/libposenc.so $@
	@ln -sfn release/libposenc.so $@.0

# The flags are a file that changes only when they do; every object depends on it.
$(B)/flags: force
	@mkdir -p $(@D)
	@echo '$(COMPILE) $(KERNEL_OPT) $(INC_lib)' | cmp -s - $@ || echo '$(COMPILE) $(KERNEL_OPT) $(INC_lib)' > $@

$(B)/%.o: %.c $(B)/flags
	@mkdir -p $(@D)
	@echo "  CC $(FLAVOUR) $<"
	@$(COMPILE) $(if $(filter $(KERNELS),$<),$(KERNEL_OPT)) $(INC_$(firstword $(subst /, ,$<))) -MMD -MP -c -o $@ $<

# The commit, for --version and the metrics: compiled in again when there is a new one.
COMMIT := $(shell git rev-parse --short=12 HEAD 2>/dev/null)
ifneq ($(COMMIT),)
$(B)/server/config_print.o: private CPPFLAGS += -DPE_COMMIT='"$(COMMIT)"'
$(B)/server/config_print.o: $(wildcard .git/logs/HEAD)
endif

# Files that are part of the program: their bytes as an object.
$(B)/config/%.o: config/%.json
	@mkdir -p $(@D)
	@$(LD) -r -b binary -z noexecstack -o $@ $<

# The web page, built by node into build/www and from there into build/site.c and its bytes, build/site.bin, one for all
# flavours, which are compiled as all else is. WITH_WEB=0 leaves it out, as having no node does; WITH_WEB=made takes
# build/site.c and build/site.bin as they are, and so does who has no node but these, as root may who installs what
# another has built.
WWW := server/www
WEB := $(if $(filter 0 made,$(WITH_WEB)),,web) # what .ci/setup is asked for
ifndef WITH_WEB
WITH_WEB := $(shell command -v npm >/dev/null && node -e 'process.exit(parseInt(process.versions.node) < 18 ? 1 : 0)' \
    2>/dev/null && echo 1 || { [ ! -s build/site.bin ] || echo made; })
endif
WWW_SRC := $(sort $(shell find $(WWW) -name node_modules -prune -o -type f -print 2>/dev/null))

# Changes when a source comes or goes, and when the page is wanted or no longer.
build/www.list: force
	@mkdir -p $(@D)
	@echo '$(WITH_WEB) $(WWW_SRC)' | cmp -s - $@ || echo '$(WITH_WEB) $(WWW_SRC)' > $@

$(WWW)/node_modules/.package-lock.json: $(WWW)/package.json $(WWW)/package-lock.json
	@echo "  NPM $(WWW)"
	@cd $(WWW) && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error >/dev/null || \
	    { echo "$(WWW): npm could not get what the page is built with; WITH_WEB=0 leaves the page out"; exit 1; }
	@mkdir -p $(@D) && touch $@

ifeq ($(WITH_WEB),1)
build/site.c: build/www.list $(WWW)/node_modules/.package-lock.json $(WWW_SRC)
	@echo "  WWW $(WWW)"
	@rm -rf build/www
	@cd $(WWW) && node build.mjs ../../build/www && node embed.mjs ../../build/www
else ifneq ($(WITH_WEB),made)
build/site.c: build/www.list
	@$(if $(WITH_WEB),,echo "  the web page is left out: it needs node 18 or later and npm (apt-get install nodejs npm)")
	@: > build/site.bin
	@printf '#include "site.h"\nconst struct site site_embedded = {0};\n' > $@
endif
$(B)/build/site.bin.o: build/site.c # written with its bytes
	@mkdir -p $(@D)
	@cd build && $(LD) -r -b binary -z noexecstack -o $(@:build/%=%) site.bin

$(B)/libposenc.a: $(LIB_OBJ)
	@rm -f $@
	@ar rcs $@ $(LIB_OBJ)

$(B)/libposenc.so: $(LIB_OBJ) lib/posenc.map
	@$(LINK) -shared -Wl,-soname,libposenc.so.0 -Wl,--version-script=lib/posenc.map -Wl,--no-undefined \
	    -o $@ $(LIB_OBJ) $(LIB_LIBS)

$(B)/posencd: $(MAIN_OBJ) $(SERVER_OBJ) $(B)/libposenc.a
	@$(LINK) -o $@ $(MAIN_OBJ) $(SERVER_OBJ) $(B)/libposenc.a $(SERVER_LIBS)

# Functions that tests can make fail: calls of them go to tests/faults/fault.c first.
FAULTY := malloc calloc realloc free aligned_alloc posix_memalign strdup inflateInit2_ fopen opendir scandir eventfd \
          epoll_create1 epoll_ctl pthread_create
# And how tests keep kernels from what this processor has (tests/instructions.h).
LIMITED := -Wl,--wrap=pe_instructions
# And how tests/unit/check_picture_tag.c has other libraries make its pictures, as their versions tell.
PRETENDED := -Wl,--wrap=zlibVersion -Wl,--wrap=png_get_libpng_ver
limited: $(B)/posencd-limited
$(B)/posencd-limited: $(MAIN_OBJ) $(SERVER_OBJ) $(LIB_OBJ) $(B)/tests/instructions.o
	@$(LINK) $(LIMITED) -o $@ $^ $(SERVER_LIBS)
$(B)/unit: $(UNIT_OBJ) $(SERVER_OBJ) $(LIB_OBJ)
	@$(LINK) $(FAULTY:%=-Wl,--wrap=%) $(LIMITED) $(PRETENDED) -o $@ $(UNIT_OBJ) $(SERVER_OBJ) $(LIB_OBJ) $(CHECK_LIBS) $(SERVER_LIBS)

$(B)/exact: $(patsubst %.c,$(B)/%.o,$(wildcard tests/*.c tests/exact/*.c)) $(LIB_OBJ)
	@$(LINK) $(LIMITED) -o $@ $^ -lmpfr -lgmp $(LIB_LIBS)

$(B)/load: $(patsubst %.c,$(B)/%.o,$(wildcard tests/load/*.c))
	@$(LINK) -o $@ $^

$(B)/bench-%: $(B)/tests/bench/%.o $(B)/tests/instructions.o $(SERVER_OBJ) $(LIB_OBJ)
	@$(LINK) $(LIMITED) -o $@ $^ $(LDLIBS) $(SERVER_LIBS)

# simdjson is C++; where it is not installed the benchmark leaves its rows out.
$(B)/%.o: %.cc $(B)/flags
	@mkdir -p $(@D)
	@echo "  CXX $(FLAVOUR) $<"
	@$(CXX) -std=c++17 -O2 -Wall -Wextra $(CPPFLAGS) -Itests -MMD -MP -c -o $@ $<
$(B)/bench-numbers: $(B)/tests/bench/numbers_simdjson.o
$(B)/bench-numbers: private LDLIBS = $(if $(wildcard /usr/include/simdjson.h),-lsimdjson) -lstdc++

$(B)/digits: $(patsubst %,$(B)/tests/%.o,digits/digits digits/to_chars instructions) $(LIB_OBJ)
	@$(LINK) $(LIMITED) -o $@ $^ -lstdc++ $(LIB_LIBS)

# A target alone with the files it is given, or with libFuzzer, which makes them up (FLAVOUR=fuzz).
FUZZ_PARTS := $(patsubst %.c,$(B)/%.o,$(filter-out tests/fuzz/replay.c tests/fuzz/fuzz_%,$(FUZZ_SRC)))
$(B)/replay-%: $(B)/tests/fuzz/fuzz_%.o $(B)/tests/fuzz/replay.o $(FUZZ_PARTS) $(SERVER_OBJ) $(LIB_OBJ)
	@$(LINK) -o $@ $^ $(SERVER_LIBS)
$(B)/fuzz-%: $(B)/tests/fuzz/fuzz_%.o $(FUZZ_PARTS) $(SERVER_OBJ) $(LIB_OBJ)
	@$(LINK) -fsanitize=fuzzer -o $@ $^ $(SERVER_LIBS)
replays: $(FUZZ:%=$(B)/replay-%)
fuzzers: $(FUZZ:%=$(B)/fuzz-%)
.SECONDARY: $(FUZZ_SRC:%.c=$(B)/%.o)

# libFuzzer is guided by the branches an input takes. Those of arithmetic say nothing, and watching them takes
# most of the time.
ifeq ($(FLAVOUR),fuzz)
$(patsubst %,$(B)/lib/core/%.o,wide phase powers rng): private CFLAGS += -fno-sanitize=fuzzer-no-link
$(patsubst %.c,$(B)/%.o,$(filter lib/kernels/%,$(LIB_SRC))): private CFLAGS += -fno-sanitize=fuzzer-no-link
endif

# Only the compiler's opinion, without code: what lint asks of clang.
syntax: $(patsubst %.c,$(B)/%.syntax,$(LIB_SRC) $(SERVER_SRC) $(MAIN_SRC) $(UNIT_SRC) $(TOOL_SRC))
$(B)/%.syntax: %.c force
	@$(COMPILE) $(INC_$(firstword $(subst /, ,$<))) -fsyntax-only $<

-include $(OBJ:.o=.d) $(TOOL_SRC:%.c=$(B)/%.d)

# ---- Run and test --------------------------------------------------------------------------------------------
run:                            ## install what is missing, build, start the daemon on 127.0.0.1:8080 (ARGS=--admin-listen=)
	@.ci/setup build $(WEB)
	+@$(MAKE) --no-print-directory server
	@exec build/posencd $(ARGS)

test:                           ## install what is missing, then all tests (ONLY="unit http": only those stages)
	@.ci/setup build test $(WEB) $(if $(or $(if $(ONLY),,all),$(filter browser,$(ONLY))),browser)
	+@tests/run.sh $(ONLY)

check-quick: $(B)/unit          ## the unit tests of one flavour, and nothing else (SUITES="npy call": only those)
	@CK_VERBOSITY=$${CK_VERBOSITY:-normal} CK_TIMEOUT_MULTIPLIER=$${CK_TIMEOUT_MULTIPLIER:-10} $(B)/unit $(SUITES)

exact: $(B)/exact               ## every float32 value against MPFR (needs libmpfr-dev)
	@$(B)/exact

fuzz:                           ## look for inputs that break a parser (FUZZ="call npy" FUZZ_SECONDS=600: only those, so long each)
	@.ci/setup build fuzz
	+@$(MAKE) --no-print-directory FLAVOUR=fuzz FUZZ='$(FUZZ)' fuzzers
	@FUZZ_SECONDS='$(FUZZ_SECONDS)' tests/fuzz/fuzz.sh $(FUZZ)

# A script says in its first lines how it is called, `python3 tests/golden/make_x.py > FILE`, or it is run in its folder.
golden:                         ## make the expected numbers of tests/golden again, by scripts that share no code with us
	@$(PYTHON) -c 'import mpmath, numpy, torch' 2>/dev/null || \
	    { echo "golden: needs mpmath, numpy and torch: apt-get install python3-mpmath python3-numpy python3-torch"; exit 1; }
	@set -e; for script in tests/golden/make_*.py; do \
	    call=$$(sed -n "s|^ *[^ ]*python3 \($$script.*\)|$(PYTHON) \1|p" $$script | head -n 1); \
	    [ -n "$$call" ] || call="cd tests/golden && $(PYTHON) $${script##*/}"; \
	    echo "  GOLDEN $$call"; sh -c "$$call"; done

# `make test` does the same where torch is installed.
torch-texts: server server/www/node_modules/.package-lock.json ## run what the pages show as PyTorch's texts (needs python3-torch)
	@TORCH=1 POSENCD=$(B)/posencd node --test --test-reporter=./tests/browser/_report.mjs tests/browser/texts.test.mjs

BENCH := $(patsubst tests/bench/%.c,$(B)/bench-%,$(wildcard tests/bench/*.c)) $(B)/load
bench bench-check bench-report:
	@.ci/setup build bench
	+@$(MAKE) --no-print-directory server $(BENCH)
	@$(PYTHON) tests/bench/bench.py $(B) $(if $(ONLY),--only='$(ONLY)') $(BENCH_$@)
bench:                          ## install peers that are missing, then speed against them and bars, as a table (ONLY="kernels serve": only those)
bench-check:                    ## the same, and fail where a ratio fell below its recorded floor
bench-report:                   ## the same, and write docs/bench.md and docs/bench.png
BENCH_bench-check := --check
BENCH_bench-report := --report

load: $(B)/load                 ## the load generator build/FLAVOUR/load; called without arguments it says how

# Long: some ten minutes, and a tenth of the requests under a sanitizer; then half an hour for all floats.
soak: server $(B)/digits        ## a daemon under many right and wrong requests (FLAVOUR=asan SEED=7 SOAK_REQUESTS=... SOAK_MUTATIONS=...)
	@SEED=$(SEED) SOAK_REQUESTS=$(SOAK_REQUESTS) SOAK_MUTATIONS=$(SOAK_MUTATIONS) SOAK_CLIENTS=$(SOAK_CLIENTS) \
	    $(PYTHON) tests/soak/soak.py $(B)/posencd
	@$(B)/digits 1 20000000

cov: ONLY = cov
cov: test                       ## which lines and errors the tests reach: at least 95 % of lib, 85 % of server

# ---- Source --------------------------------------------------------------------------------------------------
lint:                           ## format, warnings, layers, symbols, sizes, shape (ONLY="includes text": only those)
	@.ci/setup build test lint
	+@tests/rules/lint.sh $(ONLY)

tidy:                           ## clang-tidy (.clang-tidy) over lib and server: slow, more opinions than lint
	@command -v clang-tidy >/dev/null || { echo "tidy: needs clang-tidy: apt-get install clang-tidy"; exit 1; }
	@printf '%s\n' $(LIB_SRC) | xargs -r -P2 -I{} clang-tidy --quiet {} -- $(DIALECT) $(INC_lib)
	@printf '%s\n' $(SERVER_SRC) $(MAIN_SRC) | xargs -r -P2 -I{} clang-tidy --quiet {} -- $(DIALECT) $(INC_server)

format:                         ## clang-format all C files in place
	@.ci/setup lint
	@find lib server tests -name node_modules -prune -o -name '*.[ch]' -print | xargs -r clang-format-14 -i

# ---- Install and ship ----------------------------------------------------------------------------------------
# The configuration goes to share/posenc as an example, so that installing again never overwrites a changed one.
BINDIR := $(DESTDIR)$(PREFIX)/bin
LIBDIR := $(DESTDIR)$(PREFIX)/lib
INCDIR := $(DESTDIR)$(PREFIX)/include
SHAREDIR := $(DESTDIR)$(PREFIX)/share/posenc
CONFIG := $(wildcard config/*.json)

install: all                    ## into PREFIX (/usr/local), under DESTDIR if given
	install -d $(BINDIR) $(LIBDIR)/pkgconfig $(INCDIR) $(SHAREDIR)
	$(if $(MAIN_SRC),install -m 755 build/release/posencd $(BINDIR)/posencd)
	install -m 644 build/release/libposenc.a $(LIBDIR)/libposenc.a
	install -m 755 build/release/libposenc.so $(LIBDIR)/libposenc.so.$(VERSION)
	ln -sfn libposenc.so.$(VERSION) $(LIBDIR)/libposenc.so.0
	ln -sfn libposenc.so.0 $(LIBDIR)/libposenc.so
	install -m 644 $(wildcard lib/include/*.h) $(INCDIR)
	sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@VERSION@|$(VERSION)|' -e 's|@LIBS@|$(LIB_LIBS)|' lib/posenc.pc.in \
	    > $(LIBDIR)/pkgconfig/posenc.pc
	$(if $(CONFIG),install -m 644 $(CONFIG) $(SHAREDIR))
	sed 's|/usr/local/|$(PREFIX)/|' config/posencd.service > $(SHAREDIR)/posencd.service

uninstall:                      ## remove what install put there
	rm -f $(BINDIR)/posencd $(LIBDIR)/libposenc.a $(LIBDIR)/libposenc.so $(LIBDIR)/libposenc.so.0
	rm -f $(LIBDIR)/libposenc.so.$(VERSION) $(LIBDIR)/pkgconfig/posenc.pc
	rm -f $(patsubst lib/include/%,$(INCDIR)/%,$(wildcard lib/include/*.h))
	rm -rf $(SHAREDIR)

docker:                         ## build the image posenc:latest (needs docker)
	@command -v docker >/dev/null || { echo "docker: needs docker: https://docs.docker.com/engine/install/, or" \
	    "podman build -t posenc:latest ."; exit 1; }
	docker build -t posenc:latest .

image-check:                    ## build the image for real and try it (Debian, root; needs no docker)
	@.ci/setup image
	@docker/image-check

clean:                          ## remove all that was built, and server/www/node_modules
	rm -rf build $(WWW)/node_modules

help:                           ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1|\2/p' $(firstword $(MAKEFILE_LIST)) | \
	    awk -F'|' '{ printf "%-12s %s\n", $$1, $$2 }'

force:
.PHONY: all lib server unit limited objects replays fuzzers syntax run test check-quick exact fuzz golden torch-texts bench bench-check bench-report load soak cov lint \
        tidy format install uninstall docker image-check clean help force
