# posenc: build, run, test. `make help` lists the targets.
CC ?= cc
FLAVOUR ?= release
B := build/$(FLAVOUR)
PREFIX ?= /usr/local

WARN := -Wall -Wextra -Wpedantic -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wwrite-strings -Wundef
OPT_release := -O2
OPT_asan := -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
OPT_tsan := -O1 -g -fsanitize=thread
OPT_cov := -O0 -g --coverage
CFLAGS_ALL := -std=c17 -D_POSIX_C_SOURCE=200809L -ffp-contract=off -fvisibility=hidden -fPIC -pthread $(WARN) $(OPT_$(FLAVOUR)) $(CFLAGS) -MMD -MP
LIB_SRC := $(wildcard lib/*/*.c)
LIB_OBJ := $(LIB_SRC:%.c=$(B)/%.o)

all: $(B)/libposenc.a

$(B)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) -Ilib/include -Ilib -c -o $@ $<

$(B)/libposenc.a: $(LIB_OBJ)
	@rm -f $@
	ar rcs $@ $^

clean:
	rm -rf build
.PHONY: all clean
-include $(LIB_OBJ:.o=.d)
