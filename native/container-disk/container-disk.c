/*
 * container-disk: keeps the container of a disk image running for as long as its VM needs the image.
 *
 *     container-disk --copy-path PATH    listen on PATH.sock until that file is removed or SIGTERM comes
 *     container-disk --no-op             do nothing (pulls the image, in an init container)
 *
 * The node agent finds the container by its socket and mounts the image from its root; the launcher's monitor
 * removes the socket when the VM has ended, and that ends this program too. It runs inside users' images, which
 * hold nothing else, so it is linked statically and uses no more of the C library than its system calls.
 * Behaviour: cmd/container-disk-v2alpha/main.c.
 */
#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* How often to look whether the socket's file is still there, in milliseconds. */
#define LOOK_MS 1000
#define BACKLOG 50

static struct sockaddr_un address = {.sun_family = AF_UNIX};

static void say(const char *what, const char *path)
{
    const char *parts[] = {"container-disk: ", what, path, "\n"};
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        if (write(STDERR_FILENO, parts[i], strlen(parts[i])) < 0)
            return;
}

static _Noreturn void fail(const char *what, const char *path)
{
    say(what, path);
    _exit(1);
}

static void on_signal(int number)
{
    (void)number;
    unlink(address.sun_path);
    _exit(0);
}

/* Puts PATH.sock into the address, and makes its directory where that is missing. */
static void take_path(const char *path)
{
    static const char ending[] = ".sock";
    size_t length = strlen(path);
    char *slash;

    if (length == 0)
        fail("--copy-path needs a path", "");
    if (length + sizeof(ending) > sizeof(address.sun_path))
        fail("--copy-path may have 102 characters at most, unlike ", path);
    memcpy(address.sun_path, path, length);
    memcpy(address.sun_path + length, ending, sizeof(ending));

    slash = strrchr(address.sun_path, '/');
    if (slash == NULL || slash == address.sun_path)
        return;
    *slash = '\0';
    if (mkdir(address.sun_path, 0777) != 0 && errno != EEXIST)
        fail("cannot make the directory ", address.sun_path);
    *slash = '/';
}

/* A socket's file that nobody listens on is what a container that was killed has left. */
static int is_stale(void)
{
    int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int refused = probe >= 0 && connect(probe, (struct sockaddr *)&address, sizeof(address)) != 0 &&
                  errno == ECONNREFUSED;
    if (probe >= 0)
        close(probe);
    return refused;
}

static int listen_on_path(void)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        fail("cannot make a socket for ", address.sun_path);
    int failed = bind(fd, (struct sockaddr *)&address, sizeof(address));
    if (failed && errno == EADDRINUSE && is_stale()) {
        unlink(address.sun_path);
        failed = bind(fd, (struct sockaddr *)&address, sizeof(address));
    }
    if (failed)
        fail("cannot bind ", address.sun_path);
    if (listen(fd, BACKLOG) != 0)
        fail("cannot listen on ", address.sun_path);
    return fd;
}

/* Closes each connection at once (callers only ask whether somebody is there); returns when the file is gone. */
static void serve(int fd)
{
    struct pollfd waiting = {.fd = fd, .events = POLLIN};
    struct stat file;

    for (;;) {
        poll(&waiting, 1, LOOK_MS);
        for (int caller; (caller = accept(fd, NULL, NULL)) >= 0;)
            close(caller);
        if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
            fail("cannot accept connections on ", address.sun_path);
        if (stat(address.sun_path, &file) != 0) {
            say("the end, as there is no longer a ", address.sun_path);
            return;
        }
    }
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"copy-path", required_argument, NULL, 'c'},
        {"no-op", no_argument, NULL, 'n'},
        {NULL, 0, NULL, 0},
    };
    const char *path = NULL;

    opterr = 0;
    for (int option; (option = getopt_long(argc, argv, "c:", options, NULL)) != -1;) {
        if (option == 'n')
            return 0;
        if (option != 'c')
            fail("usage: container-disk --copy-path PATH | --no-op", "");
        path = optarg;
    }
    if (path == NULL)
        fail("usage: container-disk --copy-path PATH | --no-op", "");
    take_path(path);

    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    serve(listen_on_path());
    return 0;
}
