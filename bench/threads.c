/* What two threads of this machine give at once: a plain loop that shares nothing, timed on one thread and on two.
 *
 *     threads        prints the time of one thread and of two, in seconds
 */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static void *spin(void *result) {
    uint64_t x = 88172645463325252ULL;
    for (int i = 0; i < 7000000; ++i) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
    }
    *(uint64_t *)result = x;
    return NULL;
}

static double timed(int count) {
    pthread_t threads[2];
    uint64_t results[2];
    struct timespec from, to;
    clock_gettime(CLOCK_MONOTONIC, &from);
    for (int i = 0; i < count; ++i)
        if (pthread_create(&threads[i], NULL, spin, &results[i])) exit(1);
    for (int i = 0; i < count; ++i) pthread_join(threads[i], NULL);
    clock_gettime(CLOCK_MONOTONIC, &to);
    return (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) / 1e9;
}

int main(void) {
    const double one = timed(1);
    printf("%.6f %.6f\n", one, timed(2));
    return 0;
}
