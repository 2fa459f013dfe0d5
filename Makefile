# posenc: build, run, test. `make help` lists the targets.
#
# One file, no recursion into folders: sources are globs, every flavour has its own tree build/<flavour>/, and
# objects are made again when their flags change. Needs a C17 compiler, GNU make, libmicrohttpd, jansson, zlib
# and OpenBLAS; `make run` and `make test` install what is missing on Debian (.ci/setup), nothing else does.

FLAVOUR ?= release
WERROR ?= 0
PREFIX ?= /usr/local
DESTDIR ?=
PYTHON := /usr/bin/python3
B := build/$(FLAVOUR)
VERSION := $(shell sed -n 's/^\#define PE_VERSION "\(.*\)"/\1/p' lib/include/posenc.h)
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
OPT_tsan := -O1 -g -fsanitize=thread -fno-omit-frame-pointer
OPT_cov := -O0 -g --coverage
OPT := $(OPT_$(FLAVOUR))
ifeq ($(OPT),)
$(error FLAVOUR=$(FLAVOUR) is unknown: release, asan, tsan, cov, portable, lint)
endif
ifneq ($(filter release lint portable,$(FLAVOUR)),)
KERNEL_OPT := -O3
endif
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
SERVER_LIBS = -lmicrohttpd -ljansson -lz $(LIB_LIBS)
CHECK_LIBS = $(or $(shell pkg-config --libs check 2>/dev/null),-lcheck -lsubunit -lrt)

COMPILE = $(CC) $(DIALECT) $(WARN) $(OPT) $(CPPFLAGS) $(CFLAGS)
LINK = $(CC) -pthread $(OPT) $(CFLAGS) $(LDFLAGS)
# The server sees the library's public headers only; tests see everything.
INC_lib := -Ilib/include -Ilib $(BLAS_CFLAGS)
INC_server := -Ilib/include -Iserver
INC_tests := -Ilib/include -Ilib -Iserver -Itests

# ---- Sources -------------------------------------------------------------------------------------------------
LIB_SRC := $(wildcard $(patsubst %,lib/%/*.c,core kernels encodings ops formats lab))
SERVER_SRC := $(filter-out server/main.c,$(wildcard server/*.c server/*/*.c))
MAIN_SRC := $(wildcard server/main.c)
UNIT_SRC := $(wildcard tests/unit/*.c)
HEADERS := $(wildcard lib/include/*.h lib/*/*.h server/*.h server/*/*.h)
LIB_OBJ := $(LIB_SRC:%.c=$(B)/%.o)
SERVER_OBJ := $(SERVER_SRC:%.c=$(B)/%.o)
MAIN_OBJ := $(MAIN_SRC:%.c=$(B)/%.o)
UNIT_OBJ := $(UNIT_SRC:%.c=$(B)/%.o)
OBJ := $(LIB_OBJ) $(SERVER_OBJ) $(MAIN_OBJ) $(UNIT_OBJ)

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
objects: $(OBJ)

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
	@$(COMPILE) $(if $(filter lib/kernels/%,$<),$(KERNEL_OPT)) $(INC_$(firstword $(subst /, ,$<))) -MMD -MP -c -o $@ $<

$(B)/libposenc.a: $(LIB_OBJ)
	@rm -f $@
	@ar rcs $@ $(LIB_OBJ)

$(B)/libposenc.so: $(LIB_OBJ) lib/posenc.map
	@$(LINK) -shared -Wl,-soname,libposenc.so.0 -Wl,--version-script=lib/posenc.map -Wl,--no-undefined \
	    -o $@ $(LIB_OBJ) $(LIB_LIBS)

$(B)/posencd: $(MAIN_OBJ) $(SERVER_OBJ) $(B)/libposenc.a
	@$(LINK) -o $@ $(MAIN_OBJ) $(SERVER_OBJ) $(B)/libposenc.a $(SERVER_LIBS)

$(B)/unit: $(UNIT_OBJ) $(SERVER_OBJ) $(LIB_OBJ)
	@$(LINK) -o $@ $(UNIT_OBJ) $(SERVER_OBJ) $(LIB_OBJ) $(CHECK_LIBS) $(SERVER_LIBS)

# Only the compiler's opinion, without code: what lint asks of clang.
syntax: $(patsubst %.c,$(B)/%.syntax,$(LIB_SRC) $(SERVER_SRC) $(MAIN_SRC) $(UNIT_SRC))
$(B)/%.syntax: %.c force
	@$(COMPILE) $(INC_$(firstword $(subst /, ,$<))) -fsyntax-only $<

-include $(OBJ:.o=.d)

# ---- Test ----------------------------------------------------------------------------------------------------
check-quick: $(B)/unit          ## unit tests of one flavour
	@CK_VERBOSITY=$${CK_VERBOSITY:-normal} $(B)/unit

test: check-quick

# ---- Source --------------------------------------------------------------------------------------------------
lint:                           ## format, warnings of gcc and clang, layers, symbols, sizes (ONLY="includes text")
	@.ci/setup build test lint
	+@tests/rules/lint.sh $(ONLY)

format:                         ## clang-format all C files in place
	@.ci/setup lint
	@git ls-files -co --exclude-standard 'lib/*.[ch]' 'server/*.[ch]' 'tests/*.[ch]' | xargs -r clang-format-14 -i

clean:                          ## remove build/
	rm -rf build

help:                           ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1|\2/p' $(firstword $(MAKEFILE_LIST)) | awk -F'|' '{printf "%-14s %s\n", $$1, $$2}'

force:
.PHONY: all lib server unit objects syntax check-quick test lint format clean help force
