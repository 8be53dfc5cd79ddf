/*
 * What a program must not notice of system calls from patched sites (test_call_sites.py). Run in a guest, as root:
 *
 *     call_sites check             "bad" lines, what was patched, and the virtual time at the end
 *     call_sites pristine          status 42 if getppid's text is the file's
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* of a site: mov $n, %eax; syscall */
#define SITE 7
#define TABLE ((char *)0x050f0000)
#define TABLE_SIZE 0x4000

static int bad;
#define CHECK(c)                                                                                                       \
    do {                                                                                                               \
        if (!(c)) {                                                                                                    \
            bad++;                                                                                                     \
            printf("bad line %d: %s (errno %d)\n", __LINE__, #c, errno);                                               \
        }                                                                                                              \
    } while (0)

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static int ended(pid_t p)
{
    int status;
    CHECK(waitpid(p, &status, 0) == p);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/* Read a function's first bytes as they are in memory, and as they are in its file. */
static void text_of(const char *name, unsigned char *memory, unsigned char *file)
{
    void *function = dlsym(RTLD_DEFAULT, name);
    Dl_info info;
    struct link_map *map;
    CHECK(dladdr1(function, &info, (void **)&map, RTLD_DL_LINKMAP));
    memcpy(memory, function, SITE);
    int fd = open(info.dli_fname, O_RDONLY);
    Elf64_Ehdr head;
    CHECK(pread(fd, &head, sizeof head, 0) == sizeof head);
    uint64_t at = (uint64_t)function - (uint64_t)info.dli_fbase;
    for (int i = 0; i < head.e_phnum; i++) {
        Elf64_Phdr part;
        CHECK(pread(fd, &part, sizeof part, head.e_phoff + i * sizeof part) == sizeof part);
        if (part.p_type == PT_LOAD && at >= part.p_vaddr && at < part.p_vaddr + part.p_filesz)
            CHECK(pread(fd, file, SITE, at - part.p_vaddr + part.p_offset) == SITE);
    }
    close(fd);
}

static int is_patched(const char *name)
{
    unsigned char memory[SITE], file[SITE];
    text_of(name, memory, file);
    CHECK(file[0] == 0xb8 && file[5] == 0x0f && file[6] == 0x05);
    CHECK(memory[5] == 0x0f && memory[6] == 0x05);
    return memcmp(memory, file, SITE) != 0;
}

static pid_t (*call_getppid)(void);

/* A call keeps all registers but rax, rcx and r11, which are as SYSCALL leaves them; and flags, and wide registers. */
static void registers(void)
{
    static uint64_t in[13], out[12], rcx, r11, flags, rbx, rbp;
    static uint64_t wide_in[4] __attribute__((aligned(32))), wide_out[4] __attribute__((aligned(32)));
    static uint64_t seed;
    seed++;
    for (int i = 0; i < 12; i++)
        in[i] = 0x1111111111111111ull * (i + 1) + seed;
    for (int i = 0; i < 4; i++)
        wide_in[i] = in[i] * 77;
    in[12] = (uint64_t)out;
    uint64_t *p = in;
    asm volatile("vmovdqa %[wide_in], %%ymm13\n mov %%rbx, %[rbx]\n mov %%rbp, %[rbp]\n"
                 "mov 0(%%rax), %%rdi\n mov 8(%%rax), %%rsi\n mov 16(%%rax), %%rdx\n mov 24(%%rax), %%r8\n"
                 "mov 32(%%rax), %%r9\n mov 40(%%rax), %%r10\n mov 48(%%rax), %%r12\n mov 56(%%rax), %%r13\n"
                 "mov 64(%%rax), %%r14\n mov 72(%%rax), %%r15\n mov 80(%%rax), %%rbx\n mov 88(%%rax), %%rbp\n"
                 "stc\n std\n call *%[function]\n pushfq\n popq %[flags]\n cld\n mov %%rcx, %[rcx]\n mov %%r11, %[r11]\n"
                 "lea %[out], %%rax\n"
                 "mov %%rdi, 0(%%rax)\n mov %%rsi, 8(%%rax)\n mov %%rdx, 16(%%rax)\n mov %%r8, 24(%%rax)\n"
                 "mov %%r9, 32(%%rax)\n mov %%r10, 40(%%rax)\n mov %%r12, 48(%%rax)\n mov %%r13, 56(%%rax)\n"
                 "mov %%r14, 64(%%rax)\n mov %%r15, 72(%%rax)\n mov %%rbx, 80(%%rax)\n mov %%rbp, 88(%%rax)\n"
                 "mov %[rbx], %%rbx\n mov %[rbp], %%rbp\n vmovdqa %%ymm13, %[wide_out]\n"
                 : [wide_out] "=m"(wide_out), [out] "=m"(out), [rcx] "=m"(rcx), [r11] "=m"(r11), [flags] "=m"(flags),
                   [rbx] "=m"(rbx), [rbp] "=m"(rbp), "+a"(p)
                 : [wide_in] "m"(wide_in), [function] "m"(call_getppid), "m"(in)
                 : "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "memory", "cc",
                   "xmm13");
    CHECK(!memcmp(in, out, sizeof out));
    CHECK(!memcmp(wide_in, wide_out, sizeof wide_in));
    CHECK(rcx == (uint64_t)call_getppid + SITE);
    CHECK((r11 & 0x401) == 0x401 && (flags & 0x401) == 0x401);
}

/* A call costs a microsecond of virtual time (and other processes' calls do). */
static void charges(void)
{
    for (int i = 0; i < 20; i++)
        getppid();
    int64_t began_ns = now_ns();
    for (int i = 0; i < 1000; i++)
        getppid();
    int64_t took_ns = now_ns() - began_ns;
    CHECK(took_ns >= 1000000 && took_ns < 1050000);
}

static void children(const char *self, pid_t parent)
{
    for (int i = 0; i < 20; i++) {
        pid_t p = fork();
        if (!p) {
            for (int k = 0; k < 20; k++)
                if (getppid() != parent || getuid())
                    _exit(1);
            _exit(7);
        }
        CHECK(ended(p) == 7);
    }
    CHECK(!is_patched("getegid"));
    for (int i = 0; i < 20; i++) {
        pid_t p = vfork();
        if (!p) {
            for (int k = 0; k < 3; k++)
                getppid();
            execl(self, self, "pristine", NULL);
            _exit(1);
        }
        CHECK(ended(p) == 42);
    }
}

static volatile int hits;
static sigjmp_buf back;

static void on_alarm(int s)
{
    (void)s;
    hits++;
    getppid();
}

static void jump_out(int s)
{
    (void)s;
    siglongjmp(back, 1);
}

static void alarm_in(int us, int every_us)
{
    struct itimerval t = {{0, every_us}, {0, us}};
    setitimer(ITIMER_REAL, &t, NULL);
}

/* Calls that a signal interrupts are restarted, fail, or are left by longjmp. */
static void signals(void)
{
    int s[2];
    char buffer[16];
    struct iovec part = {buffer, sizeof buffer};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
    CHECK(!socketpair(AF_UNIX, SOCK_DGRAM, 0, s));
    for (int i = 0; i < 40; i++)
        CHECK(send(s[1], "x", 1, 0) == 1 && recvmsg(s[0], &message, 0) == 1);
    sigaction(SIGALRM, &action, NULL);
    for (int i = 0; i < 10; i++) {
        pid_t p = fork();
        if (!p) {
            usleep(50000);
            _exit(send(s[1], "late", 4, 0) == 4 ? 0 : 1);
        }
        int before = hits;
        alarm_in(5000, 5000);
        CHECK(recvmsg(s[0], &message, 0) == 4 && hits > before);
        alarm_in(0, 0);
        CHECK(ended(p) == 0);
    }
    action.sa_flags = 0;
    sigaction(SIGALRM, &action, NULL);
    for (int i = 0; i < 20; i++) {
        alarm_in(2000, 0);
        CHECK(recvmsg(s[0], &message, 0) < 0 && errno == EINTR);
    }
    action.sa_handler = jump_out;
    action.sa_flags = SA_NODEFER;
    sigaction(SIGALRM, &action, NULL);
    for (volatile int i = 0; i < 20; i++)
        if (!sigsetjmp(back, 1)) {
            alarm_in(2000, 0);
            recvmsg(s[0], &message, 0);
            CHECK(!"came back");
        }
    /* a sleep that is stopped and goes on is another call (restart_syscall) */
    for (int i = 0; i < 10; i++) {
        pid_t p = fork();
        if (!p) {
            struct timespec t = {0, 30000000};
            int failed = 0;
            for (int k = 0; k < 3; k++)
                failed |= clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
            _exit(failed ? 1 : 9);
        }
        for (int k = 0; k < 5; k++) {
            usleep(5000);
            kill(p, SIGSTOP);
            usleep(5000);
            kill(p, SIGCONT);
        }
        CHECK(ended(p) == 9);
    }
    close(s[0]);
    close(s[1]);
}

#define THREADS 4
static int turn;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turned = PTHREAD_COND_INITIALIZER;

/* Threads take turns; each keeps a number in a register across calls and waits. */
static void *thread(void *p)
{
    long me = (long)p;
    double sum = me + 0.5;
    volatile double expected = sum;
    for (int i = 0; i < 500; i++) {
        pthread_mutex_lock(&mutex);
        while (turn != me)
            pthread_cond_wait(&turned, &mutex);
        turn = (me + 1) % THREADS;
        pthread_cond_broadcast(&turned);
        pthread_mutex_unlock(&mutex);
        register double kept asm("xmm9") = sum;
        asm volatile("" : "+x"(kept));
        getppid();
        sched_yield();
        asm volatile("" : "+x"(kept));
        sum = kept * 1.0000001 + me;
        expected = expected * 1.0000001 + me;
    }
    CHECK(sum == expected);
    return NULL;
}

static void threads(void)
{
    pthread_t all[THREADS];
    for (long i = 0; i < THREADS; i++)
        CHECK(!pthread_create(&all[i], NULL, thread, (void *)i));
    for (int i = 0; i < THREADS; i++)
        CHECK(!pthread_join(all[i], NULL));
}

/* A cancelled thread ends in its call, also where that is a patched site. */
static void *waits(void *p)
{
    char c;
    for (;;)
        (void)!recv(*(int *)p, &c, 1, 0);
    return NULL;
}

static void cancellation(void)
{
    int s[2];
    CHECK(!socketpair(AF_UNIX, SOCK_DGRAM, 0, s));
    for (int i = 0; i < 10; i++) {
        pthread_t t;
        void *result;
        CHECK(!pthread_create(&t, NULL, waits, &s[0]));
        for (int k = 0; k < 30; k++)
            CHECK(send(s[1], "x", 1, 0) == 1);
        usleep(1000);
        CHECK(!pthread_cancel(t) && !pthread_join(t, &result) && result == PTHREAD_CANCELED);
    }
    close(s[0]);
    close(s[1]);
}

/* A debugger sees each call at entry and exit, steps through calls, and reads the program's own text. */
static void debugger(void)
{
    pid_t p = fork();
    if (!p) {
        ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        raise(SIGSTOP);
        for (int i = 0; i < 25; i++)
            getppid();
        _exit(5);
    }
    int status, stops = 0;
    waitpid(p, &status, 0);
    unsigned char memory[SITE], file[SITE];
    text_of("getppid", memory, file);
    long word = ptrace(PTRACE_PEEKTEXT, p, (void *)call_getppid, NULL);
    CHECK(!memcmp(&word, file, SITE));
    for (;;) {
        ptrace(PTRACE_SYSCALL, p, NULL, NULL);
        waitpid(p, &status, 0);
        if (!WIFSTOPPED(status))
            break;
        struct user_regs_struct registers;
        ptrace(PTRACE_GETREGS, p, NULL, &registers);
        stops += registers.orig_rax == SYS_getppid;
    }
    CHECK(WEXITSTATUS(status) == 5 && stops == 50);

    p = fork();
    if (!p) {
        ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        raise(SIGSTOP);
        for (int i = 0; i < 3; i++)
            getppid();
        _exit(6);
    }
    waitpid(p, &status, 0);
    for (int steps = 0; steps < 2000 && WIFSTOPPED(status); steps++) {
        ptrace(PTRACE_SINGLESTEP, p, NULL, NULL);
        waitpid(p, &status, 0);
    }
    if (WIFSTOPPED(status)) {
        ptrace(PTRACE_CONT, p, NULL, NULL);
        waitpid(p, &status, 0);
    }
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 6);
}

/* Run `what` in a child, which must say by its status that all is well. */
static void alone(int (*what)(void))
{
    pid_t p = fork();
    if (!p)
        _exit(what() ? 3 : 11);
    int status = ended(p);
    CHECK(status == 11);
    if (status != 11)
        printf("bad: status %d\n", status);
}

static void *page_of(void *p)
{
    return (void *)((uintptr_t)p & ~4095ul);
}

static int calls_work(void)
{
    pid_t parent = getppid();
    for (int i = 0; i < 40; i++)
        if (getppid() != parent || getuid() || call_getppid() != parent)
            return 0;
    return 1;
}

/* The text may be written: it must be the file's, and what is written there must be what runs. */
static int writes_text(void)
{
    unsigned char memory[SITE], file[SITE];
    unsigned char *text = (void *)call_getppid;
    if (mprotect(page_of(text), 4096, PROT_READ | PROT_WRITE | PROT_EXEC))
        return 1;
    text_of("getppid", memory, file);
    if (memcmp(memory, file, SITE))
        return 2;
    text[1] = SYS_getegid;
    if (call_getppid() != 0)
        return 3;
    text[1] = SYS_getppid;
    return !calls_work() || text[0] != 0xb8;
}

/* Moved text goes on at its new place. */
static int moves_text(void)
{
    char *text = (void *)call_getppid, *page = page_of(text);
    char *to = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pid_t parent = getppid();
    if (mremap(page, 4096, 4096, MREMAP_MAYMOVE | MREMAP_FIXED, to) != to)
        return 1;
    pid_t (*moved)(void) = (void *)(to + (text - page));
    for (int i = 0; i < 40; i++)
        if (moved() != parent)
            return 2;
    return 0;
}

/* The same code mapped twice: each works, and neither is the other's. */
static int maps_twice(void)
{
    Dl_info info;
    dladdr((void *)call_getppid, &info);
    int fd = open(info.dli_fname, O_RDONLY);
    unsigned char memory[SITE], file[SITE];
    text_of("getppid", memory, file);
    pid_t (*copies[2])(void), parent = getppid();
    for (int i = 0; i < 2; i++) {
        char *text = mmap(NULL, 1 << 21, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
        copies[i] = (pid_t (*)(void))memmem(text, 1 << 20, file, SITE);
        if (!copies[i])
            return 1;
        for (int k = 0; k < 40; k++)
            if (copies[i]() != parent)
                return 2;
    }
    munmap(page_of((void *)copies[0]), 4096);
    close(fd);
    return copies[1]() != parent;
}

static int has_table(void)
{
    char line[300];
    int found = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (fgets(line, sizeof line, maps))
        found |= strstr(line, "[call_sites]") != NULL;
    fclose(maps);
    return found;
}

/* A program may have the table's addresses, in whole or in part; its calls work before and after. */
static int maps_over(void)
{
    char *p = mmap(TABLE + 4096, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    if (p != TABLE + 4096 || has_table() || !calls_work())
        return 1;
    memset(p, 0xcc, 4096);
    return !calls_work() || is_patched("getppid");
}

static int takes_without_force(void)
{
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
    char *p = mmap(TABLE - 4096, 3 * 4096, PROT_READ | PROT_WRITE, flags, -1, 0);
    return p != TABLE - 4096 || !calls_work();
}

static int unmaps(void)
{
    return munmap(TABLE, 4096) || has_table() || !calls_work();
}

static int moves_table(void)
{
    char *to = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    (void)!mremap(TABLE, 4096, 4096, MREMAP_MAYMOVE | MREMAP_FIXED, to);
    return !calls_work();
}

static int protects_table(void)
{
    (void)!mprotect(TABLE, 4096, PROT_NONE);
    return !calls_work();
}

static int cannot_write_table(void)
{
    int fd = open("/proc/self/mem", O_RDWR);
    return pwrite(fd, "x", 1, (off_t)(uintptr_t)TABLE) == 1;
}

/* Pages of text that are dropped come back from the file. */
static int drops_text(void)
{
    return madvise(page_of((void *)call_getppid), 4096, MADV_DONTNEED) || !calls_work();
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IONBF, 0);
    call_getppid = dlsym(RTLD_DEFAULT, "getppid");
    if (argc > 1 && !strcmp(argv[1], "pristine"))
        return is_patched("getppid") ? 1 : 42;
    for (int i = 0; i < 40; i++)
        registers();
    printf("patched %d\n", is_patched("getppid"));
    charges();
    children("/proc/self/exe", getpid());
    signals();
    threads();
    cancellation();
    debugger();
    alone(writes_text);
    alone(moves_text);
    alone(maps_twice);
    alone(maps_over);
    alone(takes_without_force);
    alone(unmaps);
    alone(moves_table);
    alone(protects_table);
    alone(cannot_write_table);
    alone(drops_text);
    for (int i = 0; i < 40; i++)
        registers();
    printf("bad %d, virtual time %lld ns\n", bad, (long long)now_ns());
    return bad != 0;
}
