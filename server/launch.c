/* SPDX-License-Identifier: MIT
 *
 * Starting: everything is loaded and both sockets are bound before /readyz says yes, so that a daemon that
 * cannot work says so at once, by its exit code and one line.
 *
 * Stopping, on SIGTERM or SIGINT, in an order that loses no request: /readyz says no, while new connections
 * are still taken for drain_delay (balancers need some time to notice); then no more connections, replies say
 * "Connection: close", idle connections are closed; what is in flight may take drain_timeout; what is left
 * then is stopped and answered 503. The admin listener lives until the end. A second signal ends the process
 * where it stands.
 */
#include "launch.h"

#include "api/plans.h"
#include "cpus.h"
#include "metrics.h"
#include "net/buffers.h"
#include "net/http.h"
#include "net/pool.h"
#include "routes.h"
#include "site.h"
#include "tables.h"
#include "wire/bind.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define LAUNCH_MAX_ROUTES     512
#define LAUNCH_ADMIN_DRAIN_NS POOL_SECOND
#define LAUNCH_WATCHDOG_S     5 /* after the drain timeout: a part that never ends */
#define LAUNCH_SPARE_FDS      64
#define LAUNCH_TIDY_S         5 /* large blocks that nobody wanted for that long are not kept */
/* Below, libmicrohttpd spins where it cannot take its first connection, and OpenBLAS, whose threads start
 * with the program, where it cannot map its buffers of 128 MiB. */
#define LAUNCH_LEAST_FDS   32
#define LAUNCH_LEAST_SPACE ((rlim_t)512 << 20)
/* Blocks kept for reuse. None under AddressSanitizer, which shall see every use after release. */
#if defined(__SANITIZE_ADDRESS__)
#define LAUNCH_KEEP_BYTES ((size_t)0)
#else
#define LAUNCH_KEEP_BYTES ((size_t)256 << 20)
#endif

/* ---- Loading ------------------------------------------------------------------------------------------- */

static int open_metrics(struct launch *launch, struct pe_error *err) {
    const char *names[LAUNCH_MAX_ROUTES];
    size_t n = routes_names(names, LAUNCH_MAX_ROUTES);
    launch->service.metrics = metrics_open(names, n < LAUNCH_MAX_ROUTES ? n : LAUNCH_MAX_ROUTES, err);
    return err->code;
}

/* Kept plans are no memory of a request, but should not be much beside those. */
static size_t plan_bytes(const struct config *config, size_t memory_bytes) {
    size_t asked = (size_t)config->plan_bytes, most = memory_bytes / 8;
    return asked < most ? asked : most;
}

int launch_load(struct launch *launch, const struct config *config, struct pe_error *err) {
    *launch = (struct launch){.service.config = config};
    log_init(&launch->log, STDERR_FILENO, config->log_format);
    buffers_tune_malloc();
    pe_linalg_init();
    launch->budget.limit = config->memory_bytes > 0 ? (size_t)config->memory_bytes : budget_default("");
    launch->service.budget = &launch->budget;
    launch->buffers = buffers_open(LAUNCH_KEEP_BYTES, &launch->budget);
    if (launch->buffers == NULL) {
        return pe_fail(err, PE_ERR_MEMORY, "", "no memory to start with");
    }
    launch->service.allocator = buffers_allocator(launch->buffers);
    if (presets_open(&launch->presets, config->presets_file, err) != PE_OK ||
        tables_open(&launch->tables, config->tables_dir, (uint64_t)config->tables_bytes, err) != PE_OK ||
        open_metrics(launch, err) != PE_OK) {
        launch_unload(launch);
        return err->code;
    }
    launch->plans = plans_open(plan_bytes(config, launch->budget.limit), launch->service.metrics);
    if (launch->plans == NULL) {
        launch_unload(launch);
        return pe_fail(err, PE_ERR_MEMORY, "", "no memory to start with");
    }
    launch->service.plans = launch->plans;
    launch->service.presets = launch->presets;
    launch->service.tables = launch->tables;
    launch->service.site = &site_embedded;
    return PE_OK;
}

void launch_unload(struct launch *launch) {
    plans_close(launch->plans);
    metrics_close(launch->service.metrics);
    tables_close(launch->tables);
    presets_close(launch->presets);
    buffers_close(launch->buffers);
    *launch = (struct launch){0};
}

/* ---- The system ---------------------------------------------------------------------------------------- */

/* The lowest free descriptor is the one that is given, so they are filled in order. */
static bool fill_streams(void) {
    for (int fd = 0; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) != fd) {
            return false;
        }
    }
    return true;
}

int launch_check_system(struct pe_error *err) {
    struct rlimit limit;
    if (!fill_streams()) {
        return pe_fail(err, PE_ERR_UNKNOWN_NAME, "",
                       "a standard stream is closed and /dev/null cannot be opened");
    }
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_max < LAUNCH_LEAST_FDS) {
        return pe_fail(err, PE_ERR_LIMIT, "",
                       "the system allows %llu file descriptors (ulimit -n), at least %d are needed",
                       (unsigned long long)limit.rlim_max, LAUNCH_LEAST_FDS);
    }
    if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur < LAUNCH_LEAST_SPACE) {
        return pe_fail(err, PE_ERR_LIMIT, "",
                       "the system allows %llu MiB of address space (ulimit -v), at least %llu are needed",
                       (unsigned long long)(limit.rlim_cur >> 20),
                       (unsigned long long)(LAUNCH_LEAST_SPACE >> 20));
    }
    return PE_OK;
}

/* ---- Signals ------------------------------------------------------------------------------------------- */

static sigset_t stop_signals(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    return set;
}

/* On a thread that some library started before main and that does not block the signal (OpenBLAS does so): it
 * blocks it from now on and sends it again, until it waits for the thread that wants it. Needs no global. */
static void pass_on(int number, siginfo_t *info, void *context) {
    ucontext_t *interrupted = context;
    (void)info;
    sigaddset(&interrupted->uc_sigmask, number);
    kill(getpid(), number);
}

void launch_block_signals(void) {
    struct sigaction action = {.sa_sigaction = pass_on, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigset_t set = stop_signals();
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    sigemptyset(&action.sa_mask);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
}

/* Meanwhile this thread, which has nothing else to do, gives memory back after a burst of large requests. */
static int wait_for_signal(struct launch *launch) {
    const struct timespec interval = {.tv_sec = LAUNCH_TIDY_S};
    sigset_t set = stop_signals();
    int number;
    while ((number = sigtimedwait(&set, NULL, &interval)) <= 0) {
        size_t bytes = errno == EAGAIN ? buffers_tidy(launch->buffers) : 0;
        if (bytes > 0) {
            const struct log_pair pairs[] = {{.name = "bytes", .number = (int64_t)bytes}};
            log_event(&launch->log, LOG_INFO, "unused memory given back", pairs, PE_COUNT(pairs));
        }
    }
    return number;
}

static void exit_at_once(int number) {
    _exit(number == SIGALRM ? LAUNCH_EXIT_FAILED : 128 + number);
}

/* From now on a second signal, or a drain that hangs, ends the process. */
static void arm_exit(int64_t drain_ms) {
    struct sigaction action = {.sa_handler = exit_at_once};
    sigset_t set = stop_signals();
    sigemptyset(&action.sa_mask);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGALRM, &action, NULL);
    alarm((unsigned)(drain_ms / 1000) + LAUNCH_WATCHDOG_S);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

/* ---- Serving ------------------------------------------------------------------------------------------- */

/* As many descriptors as connections are allowed, if the system lets us. */
static void raise_fd_limit(const struct launch *launch) {
    struct rlimit limit;
    rlim_t wanted = (rlim_t)launch->service.config->connections + LAUNCH_SPARE_FDS;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted) {
        return;
    }
    limit.rlim_cur = wanted < limit.rlim_max ? wanted : limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_cur < wanted) {
        const struct log_pair pairs[] = {{.name = "limit", .number = (int64_t)limit.rlim_cur},
                                         {.name = "wanted", .number = (int64_t)wanted}};
        log_event(&launch->log, LOG_WARNING, "too few file descriptors for option connections", pairs,
                  PE_COUNT(pairs));
    }
}

static int open_pool(struct pool **pool, const struct launch *launch, struct pe_error *err) {
    const struct config *config = launch->service.config;
    struct pool_options options = {.n_workers = (size_t)config->workers,
                                   .n_waiting = (size_t)config->queue_depth,
                                   .metrics = launch->service.metrics};
    if (options.n_workers == 0) {
        options.n_workers = (size_t)cpus_read("").usable;
    }
    return pool_open(pool, &options, err);
}

struct listeners {
    struct http *main, *admin; /* admin NULL = none */
};

static int open_listeners(struct listeners *listeners, struct launch *launch, struct pool *pool,
                          struct pe_error *err) {
    const struct config *config = launch->service.config;
    struct http_options options = {.service = &launch->service,
                                   .log = &launch->log,
                                   .pool = pool,
                                   .address = config->admin_listen,
                                   .option = "--admin-listen",
                                   .admin = true};
    if (config->admin_listen[0] != '\0' && http_open(&listeners->admin, &options, err) != PE_OK) {
        return err->code;
    }
    options.address = config->listen;
    options.option = "--listen";
    options.admin = false;
    return http_open(&listeners->main, &options, err);
}

/* Both are closed whether or not they were opened. */
static void close_listeners(struct listeners *listeners, struct pool *pool, int64_t drain_ns) {
    if (listeners->main != NULL) {
        http_drain(listeners->main, drain_ns);
        http_join(listeners->main);
    }
    if (listeners->admin != NULL) {
        http_drain(listeners->admin, LAUNCH_ADMIN_DRAIN_NS);
        http_join(listeners->admin);
    }
    pool_close(pool);
    http_close(listeners->main);
    http_close(listeners->admin);
}

static void log_started(const struct launch *launch, const struct listeners *listeners,
                        const struct pool *pool) {
    struct cpus cpus = cpus_read("");
    const struct log_pair pairs[] = {
        {.name = "address", .text = http_address(listeners->main)},
        {.name = "admin_address", .text = listeners->admin != NULL ? http_address(listeners->admin) : ""},
        {.name = "workers", .number = (int64_t)pool_n_workers(pool)},
        {.name = "cpus_allowed", .number = cpus.allowed},
        {.name = "cpu_quota_percent", .number = (int64_t)(cpus.quota * 100)}, /* 0 = no limit */
        {.name = "pid", .number = getpid()},
    };
    log_config(&launch->log, "configuration", launch->service.config);
    log_event(&launch->log, LOG_INFO, "listening", pairs, PE_COUNT(pairs));
}

/* Sleeps although signals may come; but then the process ends. */
static void sleep_ms(int64_t ms) {
    struct timespec rest = {.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000) * 1000000};
    while (nanosleep(&rest, &rest) != 0 && errno == EINTR) {
    }
}

static void serve_until_signal(struct launch *launch) {
    const struct config *config = launch->service.config;
    int number = wait_for_signal(launch);
    metrics_set(launch->service.metrics, METRICS_READY, 0);
    arm_exit(config->drain_delay_ms + config->drain_timeout_ms);
    const struct log_pair pairs[] = {
        {.name = "signal", .number = number},
        {.name = "requests", .number = metrics_get(launch->service.metrics, METRICS_REQUESTS_IN_FLIGHT)},
        {.name = "delay_ms", .number = config->drain_delay_ms},
        {.name = "timeout_ms", .number = config->drain_timeout_ms},
    };
    log_event(&launch->log, LOG_INFO, "draining", pairs, PE_COUNT(pairs));
    sleep_ms(config->drain_delay_ms);
}

int launch_serve(struct launch *launch, struct pe_error *err) {
    struct listeners listeners = {0};
    struct pool *pool = NULL;
    raise_fd_limit(launch);
    if (open_pool(&pool, launch, err) != PE_OK) {
        return LAUNCH_EXIT_FAILED;
    }
    if (open_listeners(&listeners, launch, pool, err) != PE_OK) {
        close_listeners(&listeners, pool, 0);
        return LAUNCH_EXIT_LISTEN;
    }
    metrics_set(launch->service.metrics, METRICS_READY, 1);
    log_started(launch, &listeners, pool);
    serve_until_signal(launch);
    close_listeners(&listeners, pool, launch->service.config->drain_timeout_ms * POOL_MS);
    log_event(&launch->log, LOG_INFO, "stopped", NULL, 0);
    return LAUNCH_EXIT_OK;
}
