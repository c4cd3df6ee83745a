#pragma once
/// Machine, keys, and the placement that comes of them: machines are those of machine() in placement_test.cc.

namespace lamina {

/// `wanted` as in_words() says it.
struct PlacementRow {
  const char *machine, *keys, *wanted;
};

inline const PlacementRow kPlacementRows[] = {
    {"one4", "", "1x4 YES [0: 0 1 2 3]"},
    {"one4", "CPU_THROUGHPUT_STREAMS=2", "2x2 YES [0: 0 1; 0: 2 3]"},
    {"one4", "CPU_THROUGHPUT_STREAMS=3", "3x1 YES [0: 0; 0: 1; 0: 2] threads: 3 streams of 1 thread each."},
    {"one4", "CPU_THROUGHPUT_STREAMS=4", "4x1 YES [0: 0; 0: 1; 0: 2; 0: 3]"},
    {"one4", "CPU_THROUGHPUT_STREAMS=6",
     "6x1 NO [0: 0; 0: 1; 0: 2; 0: 3; 0: 0; 0: 1] threads: 6 streams of 1 thread each. binding: more threads "
     "than processors."},
    {"one4", "CPU_THROUGHPUT_STREAMS=0",
     "0x4 NO [] binding: without streams the work is done by the callers' threads."},
    {"one4", "CPU_THROUGHPUT_STREAMS=0 CPU_BIND_THREAD=YES", "0x4 YES []"},
    {"one4", "CPU_THROUGHPUT_STREAMS=0 CPU_THREADS_NUM=1 CPU_BIND_THREAD=NO", "0x1 NO []"},
    {"one4", "CPU_THROUGHPUT_STREAMS=NUMA", "1x4 YES [0: 0 1 2 3] streams: 1 node."},
    {"one4", "CPU_THROUGHPUT_STREAMS=AUTO",
     "4x1 YES [0: 0; 0: 1; 0: 2; 0: 3] streams: highest predicted throughput of all numbers of streams."},
    {"one4", "CPU_THREADS_NUM=1", "1x1 YES [0: 0]"},
    {"one4", "CPU_THREADS_NUM=3", "1x3 YES [0: 0 1 2]"},
    {"one4", "CPU_THREADS_NUM=8",
     "1x4 YES [0: 0 1 2 3] threads: the process may use 4 processors. ! CPU_THREADS_NUM: 8 wanted: the "
     "process may use 4 processors"},
    {"one4", "CPU_THREADS_NUM=2 CPU_THROUGHPUT_STREAMS=4",
     "2x1 YES [0: 0; 0: 1] streams: there are 2 threads for them. ! CPU_THROUGHPUT_STREAMS: 4 wanted: there "
     "are 2 threads for them"},
    {"one4", "CPU_THREADS_NUM=3 CPU_THROUGHPUT_STREAMS=2",
     "2x1 YES [0: 0; 0: 1] threads: 2 streams of 1 thread each. ! CPU_THREADS_NUM: 3 wanted: 2 streams of 1 "
     "thread each"},
    {"one4", "CPU_BIND_THREAD=NO", "1x4 NO [0: 0 1 2 3]"},
    {"one4", "CPU_BIND_THREAD=NUMA", "1x4 NUMA [0: 0 1 2 3]"},
    {"one4", "CPU_THROUGHPUT_STREAMS=6 CPU_BIND_THREAD=YES",
     "6x1 YES [0: 0; 0: 1; 0: 2; 0: 3; 0: 0; 0: 1] threads: 6 streams of 1 thread each."},
    {"one4", "EXCLUSIVE_ASYNC_REQUESTS=YES", "1x4 YES [0: 0 1 2 3]"},
    {"one4", "EXCLUSIVE_ASYNC_REQUESTS=YES CPU_THROUGHPUT_STREAMS=4",
     "1x4 YES [0: 0 1 2 3] streams: EXCLUSIVE_ASYNC_REQUESTS: one request after another. ! "
     "CPU_THROUGHPUT_STREAMS: 4 wanted: EXCLUSIVE_ASYNC_REQUESTS: one request after another"},
    {"one4", "EXCLUSIVE_ASYNC_REQUESTS=YES CPU_THROUGHPUT_STREAMS=0",
     "0x4 NO [] binding: without streams the work is done by the callers' threads."},
    {"one4", "EXCLUSIVE_ASYNC_REQUESTS=YES CPU_THROUGHPUT_STREAMS=AUTO",
     "1x4 YES [0: 0 1 2 3] streams: EXCLUSIVE_ASYNC_REQUESTS: one request after another."},
    {"one4", "PERFORMANCE_HINT=LATENCY",
     "1x4 YES [0: 0 1 2 3] streams: 1 node. hyper-threading: one inference is faster with a thread per core "
     "(PERFORMANCE_HINT)."},
    {"one4", "PERFORMANCE_HINT=THROUGHPUT",
     "4x1 YES [0: 0; 0: 1; 0: 2; 0: 3] streams: highest predicted throughput of all numbers of streams."},
    {"one4", "PERFORMANCE_HINT=THROUGHPUT PERFORMANCE_HINT_NUM_REQUESTS=2",
     "2x2 YES [0: 0 1; 0: 2 3] streams: highest predicted throughput of 2 streams at most."},
    {"one4", "PERFORMANCE_HINT=THROUGHPUT CPU_THROUGHPUT_STREAMS=1", "1x4 YES [0: 0 1 2 3]"},
    {"one4", "SCHEDULING_CORE_TYPE=ECORE_ONLY", "1x4 YES [0: 0 1 2 3] cores: there are no efficiency cores."},
    {"one4", "SCHEDULING_CORE_TYPE=PCORE_ONLY", "1x4 YES [0: 0 1 2 3]"},
    {"smt4", "", "1x8 YES [0: 0 4 1 5 2 6 3 7]"},
    {"smt4", "PERFORMANCE_HINT=LATENCY",
     "1x4 YES [0: 0 1 2 3] threads: a thread per core. streams: 1 node. hyper-threading: one inference is "
     "faster with a thread per core (PERFORMANCE_HINT)."},
    {"smt4", "PERFORMANCE_HINT=LATENCY ENABLE_HYPER_THREADING=YES",
     "1x8 YES [0: 0 4 1 5 2 6 3 7] streams: 1 node."},
    {"smt4", "ENABLE_HYPER_THREADING=NO", "1x4 YES [0: 0 1 2 3] threads: a thread per core."},
    {"smt4", "CPU_THROUGHPUT_STREAMS=2", "2x4 YES [0: 0 4 1 5; 0: 2 6 3 7]"},
    {"smt4", "CPU_THROUGHPUT_STREAMS=4", "4x2 YES [0: 0 4; 0: 1 5; 0: 2 6; 0: 3 7]"},
    {"smt4", "CPU_THROUGHPUT_STREAMS=2 ENABLE_HYPER_THREADING=NO",
     "2x2 YES [0: 0 1; 0: 2 3] threads: a thread per core."},
    {"smt4", "CPU_THREADS_NUM=4", "1x4 YES [0: 0 1 2 3]"},
    {"smt4", "CPU_THREADS_NUM=5", "1x5 YES [0: 0 4 1 2 3]"},
    {"smt4", "CPU_THREADS_NUM=6 ENABLE_HYPER_THREADING=NO",
     "1x6 YES [0: 0 4 1 5 2 3] hyper-threading: CPU_THREADS_NUM asks for more threads than that would give."},
    {"smt4", "CPU_THROUGHPUT_STREAMS=8", "8x1 YES [0: 0; 0: 4; 0: 1; 0: 5; 0: 2; 0: 6; 0: 3; 0: 7]"},
    {"smt4", "CPU_THROUGHPUT_STREAMS=AUTO",
     "8x1 YES [0: 0; 0: 4; 0: 1; 0: 5; 0: 2; 0: 6; 0: 3; 0: 7] streams: highest predicted throughput of all "
     "numbers of streams."},
    {"two8", "",
     "1x16 YES [-1: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15] threads: a thread per core. hyper-threading: one "
     "inference is faster with a thread per core on several sockets."},
    {"two8", "CPU_BIND_THREAD=NO",
     "1x32 NO [-1: 0 16 1 17 2 18 3 19 4 20 5 21 6 22 7 23 8 24 9 25 10 26 11 27 12 28 13 29 14 30 15 31]"},
    {"two8", "CPU_BIND_THREAD=NUMA",
     "1x16 NUMA [-1: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15] threads: a thread per core. hyper-threading: one "
     "inference is faster with a thread per core on several sockets."},
    {"two8", "CPU_THROUGHPUT_STREAMS=NUMA",
     "2x8 YES [0: 0 1 2 3 4 5 6 7; 1: 8 9 10 11 12 13 14 15] threads: a thread per core. streams: 2 nodes. "
     "hyper-threading: one inference is faster with a thread per core on several sockets."},
    {"two8", "CPU_THROUGHPUT_STREAMS=NUMA CPU_BIND_THREAD=NUMA",
     "2x8 NUMA [0: 0 1 2 3 4 5 6 7; 1: 8 9 10 11 12 13 14 15] threads: a thread per core. streams: 2 nodes. "
     "hyper-threading: one inference is faster with a thread per core on several sockets."},
    {"two8", "CPU_THROUGHPUT_STREAMS=4",
     "4x8 YES [0: 0 16 1 17 2 18 3 19; 1: 8 24 9 25 10 26 11 27; 0: 4 20 5 21 6 22 7 23; 1: 12 28 13 29 14 "
     "30 15 31]"},
    {"two8", "CPU_THROUGHPUT_STREAMS=3",
     "3x10 YES [0: 0 16 1 17 2 3 4 5 6 7; 1: 8 24 9 25 10 11 12 13 14 15; -1: 18 19 20 21 22 23 26 27 28 29] "
     "threads: 3 streams of 10 threads each."},
    {"two8", "CPU_THROUGHPUT_STREAMS=5",
     "5x6 YES [0: 0 16 1 17 2 18; 1: 8 24 9 25 10 26; 0: 3 19 4 5 6 7; 1: 11 27 12 13 14 15; -1: 20 21 22 23 "
     "28 29] threads: 5 streams of 6 threads each."},
    {"two8", "CPU_THREADS_NUM=4",
     "1x4 YES [0: 0 1 2 3] hyper-threading: one inference is faster with a thread per core on several "
     "sockets."},
    {"two8", "CPU_THREADS_NUM=4 CPU_THROUGHPUT_STREAMS=2",
     "2x2 YES [0: 0 1; 1: 8 9] hyper-threading: one inference is faster with a thread per core on several "
     "sockets."},
    {"two8", "CPU_THREADS_NUM=20",
     "1x20 YES [-1: 0 16 1 17 2 18 3 19 4 20 5 21 6 22 7 23 8 9 10 11] hyper-threading: CPU_THREADS_NUM asks "
     "for more threads than that would give."},
    {"two8", "CPU_THREADS_NUM=1 CPU_THROUGHPUT_STREAMS=NUMA",
     "1x1 YES [0: 0] streams: there is 1 thread for them. hyper-threading: one inference is faster with a "
     "thread per core on several sockets."},
    {"two8", "PERFORMANCE_HINT=LATENCY",
     "2x8 YES [0: 0 1 2 3 4 5 6 7; 1: 8 9 10 11 12 13 14 15] threads: a thread per core. streams: 2 nodes. "
     "hyper-threading: one inference is faster with a thread per core (PERFORMANCE_HINT)."},
    {"two8", "PERFORMANCE_HINT=LATENCY CPU_BIND_THREAD=NO",
     "2x8 NO [0: 0 1 2 3 4 5 6 7; 1: 8 9 10 11 12 13 14 15] threads: a thread per core. streams: 2 nodes. "
     "hyper-threading: one inference is faster with a thread per core (PERFORMANCE_HINT)."},
    {"two8", "ENABLE_HYPER_THREADING=YES",
     "1x32 YES [-1: 0 16 1 17 2 18 3 19 4 20 5 21 6 22 7 23 8 24 9 25 10 26 11 27 12 28 13 29 14 30 15 31]"},
    {"two8", "CPU_THROUGHPUT_STREAMS=2",
     "2x8 YES [0: 0 1 2 3 4 5 6 7; 1: 8 9 10 11 12 13 14 15] threads: a thread per core. hyper-threading: "
     "one inference is faster with a thread per core on several sockets."},
    {"two8", "CPU_THROUGHPUT_STREAMS=32",
     "32x1 YES [0: 0; 1: 8; 0: 16; 1: 24; 0: 1; 1: 9; 0: 17; 1: 25; 0: 2; 1: 10; 0: 18; 1: 26; 0: 3; 1: 11; "
     "0: 19; 1: 27; 0: 4; 1: 12; 0: 20; 1: 28; 0: 5; 1: 13; 0: 21; 1: 29; 0: 6; 1: 14; 0: 22; 1: 30; 0: 7; "
     "1: 15; 0: 23; 1: 31]"},
    {"two8", "CPU_THROUGHPUT_STREAMS=40",
     "40x1 NO [0: 0; 0: 16; 0: 1; 0: 17; 0: 2; 0: 18; 0: 3; 0: 19; 0: 4; 0: 20; 0: 5; 0: 21; 0: 6; 0: 22; 0: "
     "7; 0: 23; 1: 8; 1: 24; 1: 9; 1: 25; 1: 10; 1: 26; 1: 11; 1: 27; 1: 12; 1: 28; 1: 13; 1: 29; 1: 14; 1: "
     "30; 1: 15; 1: 31; 0: 0; 0: 16; 0: 1; 0: 17; 0: 2; 0: 18; 0: 3; 0: 19] threads: 40 streams of 1 thread "
     "each. binding: more threads than processors."},
    {"nodes4", "", "1x16 YES [-1: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15]"},
    {"nodes4", "CPU_THROUGHPUT_STREAMS=NUMA",
     "4x4 YES [0: 0 1 2 3; 1: 4 5 6 7; 2: 8 9 10 11; 3: 12 13 14 15] streams: 4 nodes."},
    {"nodes4", "CPU_THROUGHPUT_STREAMS=2", "2x8 YES [-1: 0 1 2 3 4 5 6 7; -1: 8 9 10 11 12 13 14 15]"},
    {"nodes4", "CPU_THROUGHPUT_STREAMS=3",
     "3x5 YES [-1: 0 1 2 3 4; -1: 5 6 7 8 9; -1: 10 11 12 13 14] threads: 3 streams of 5 threads each."},
    {"nodes4", "CPU_THROUGHPUT_STREAMS=8",
     "8x2 YES [0: 0 1; 1: 4 5; 2: 8 9; 3: 12 13; 0: 2 3; 1: 6 7; 2: 10 11; 3: 14 15]"},
    {"nodes4", "CPU_THREADS_NUM=6", "1x6 YES [-1: 0 1 2 3 4 5]"},
    {"nodes4", "CPU_THREADS_NUM=6 CPU_THROUGHPUT_STREAMS=NUMA",
     "4x1 YES [0: 0; 1: 4; 2: 8; 3: 12] threads: 4 streams of 1 thread each. streams: 4 nodes. ! "
     "CPU_THREADS_NUM: 6 wanted: 4 streams of 1 thread each"},
    {"nodes4", "CPU_THREADS_NUM=2 CPU_THROUGHPUT_STREAMS=NUMA",
     "2x1 YES [0: 0; 1: 4] streams: there are 2 threads for them."},
    {"nodes4", "CPU_BIND_THREAD=NUMA CPU_THROUGHPUT_STREAMS=2",
     "2x8 NUMA [-1: 0 1 2 3 4 5 6 7; -1: 8 9 10 11 12 13 14 15]"},
    {"nodes4", "PERFORMANCE_HINT=LATENCY",
     "4x4 YES [0: 0 1 2 3; 1: 4 5 6 7; 2: 8 9 10 11; 3: 12 13 14 15] streams: 4 nodes. hyper-threading: one "
     "inference is faster with a thread per core (PERFORMANCE_HINT)."},
    {"hybrid6", "",
     "1x6 YES [0: 0 2 4 6 8 10] threads: performance cores alone are faster for one inference, a thread per "
     "core. hyper-threading: one inference is faster with a thread per core on hybrid processors."},
    {"hybrid6", "PERFORMANCE_HINT=LATENCY",
     "1x6 YES [0: 0 2 4 6 8 10] threads: performance cores alone are faster for one inference, a thread per "
     "core. streams: 1 node. hyper-threading: one inference is faster with a thread per core "
     "(PERFORMANCE_HINT)."},
    {"hybrid6", "ENABLE_HYPER_THREADING=YES",
     "1x12 YES [0: 0 1 2 3 4 5 6 7 8 9 10 11] threads: performance cores alone are faster for one "
     "inference."},
    {"hybrid6", "SCHEDULING_CORE_TYPE=PCORE_ONLY", "1x12 YES [0: 0 1 2 3 4 5 6 7 8 9 10 11]"},
    {"hybrid6", "SCHEDULING_CORE_TYPE=ECORE_ONLY", "1x8 YES [0: 12 13 14 15 16 17 18 19]"},
    {"hybrid6", "CPU_THROUGHPUT_STREAMS=2",
     "2x10 YES [0: 0 1 2 3 4 5 6 7 8 9; 0: 10 11 12 13 14 15 16 17 18 19]"},
    {"hybrid6", "CPU_THROUGHPUT_STREAMS=4",
     "4x5 YES [0: 0 1 2 3 4; 0: 5 6 7 8 9; 0: 10 11 12 13 14; 0: 15 16 17 18 19]"},
    {"hybrid6", "CPU_THROUGHPUT_STREAMS=AUTO",
     "20x1 YES [0: 0; 0: 1; 0: 2; 0: 3; 0: 4; 0: 5; 0: 6; 0: 7; 0: 8; 0: 9; 0: 10; 0: 11; 0: 12; 0: 13; 0: "
     "14; 0: 15; 0: 16; 0: 17; 0: 18; 0: 19] streams: highest predicted throughput of all numbers of "
     "streams."},
    {"hybrid6", "CPU_THREADS_NUM=6",
     "1x6 YES [0: 0 2 4 6 8 10] hyper-threading: one inference is faster with a thread per core on hybrid "
     "processors."},
    {"hybrid6", "CPU_THREADS_NUM=8",
     "1x8 YES [0: 0 2 4 6 8 10 12 13] hyper-threading: CPU_THREADS_NUM asks for more threads than that would "
     "give."},
    {"hybrid6", "CPU_THREADS_NUM=20",
     "1x20 YES [0: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19] hyper-threading: CPU_THREADS_NUM asks "
     "for more threads than that would give."},
    {"hybrid6", "CPU_THREADS_NUM=64",
     "1x20 YES [0: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19] threads: the process may use 20 "
     "processors. hyper-threading: CPU_THREADS_NUM asks for more threads than that would give. ! "
     "CPU_THREADS_NUM: 64 "
     "wanted: the process may use 20 processors"},
    {"hybrid2", "",
     "1x10 YES [0: 0 2 4 5 6 7 8 9 10 11] threads: a thread per core. hyper-threading: one inference is "
     "faster with a thread per core on hybrid processors."},
    {"hybrid2", "ENABLE_HYPER_THREADING=YES", "1x12 YES [0: 0 1 2 3 4 5 6 7 8 9 10 11]"},
    {"hybrid2", "SCHEDULING_CORE_TYPE=PCORE_ONLY", "1x4 YES [0: 0 1 2 3]"},
    {"hybrid2", "CPU_THROUGHPUT_STREAMS=2", "2x6 YES [0: 0 1 2 3 4 5; 0: 6 7 8 9 10 11]"},
    {"hybrid2", "CPU_THROUGHPUT_STREAMS=3", "3x4 YES [0: 0 1 2 3; 0: 4 5 6 7; 0: 8 9 10 11]"},
    {"hybrid2", "CPU_THREADS_NUM=4",
     "1x4 YES [0: 0 2 4 5] hyper-threading: one inference is faster with a thread per core on hybrid "
     "processors."},
    {"quota2.5", "",
     "1x2 NO [0: 0 1] threads: a quota of 2.5 processors. binding: a quota of 2.5 processors."},
    {"quota2.5", "CPU_BIND_THREAD=YES", "1x2 YES [0: 0 1] threads: a quota of 2.5 processors."},
    {"quota2.5", "CPU_THREADS_NUM=4",
     "1x4 NO [0: 0 1 2 3] binding: a quota of 2.5 processors. ! CPU_THREADS_NUM: 4 is more than a quota of "
     "2.5 processors: threads will wait for each other"},
    {"quota2.5", "CPU_THROUGHPUT_STREAMS=2",
     "2x1 NO [0: 0; 0: 1] threads: a quota of 2.5 processors. binding: a quota of 2.5 processors."},
    {"quota2.5", "CPU_THROUGHPUT_STREAMS=4",
     "4x1 NO [0: 0; 0: 1; 0: 2; 0: 3] threads: 4 streams of 1 thread each. binding: a quota of 2.5 "
     "processors. ! CPU_THROUGHPUT_STREAMS: 4 is more than a quota of 2.5 processors: threads will wait for "
     "each other"},
    {"quota2.5", "CPU_THROUGHPUT_STREAMS=AUTO",
     "2x1 NO [0: 0; 0: 1] threads: a quota of 2.5 processors. streams: highest predicted throughput of all "
     "numbers of streams. binding: a quota of 2.5 processors."},
    {"quota2.5", "PERFORMANCE_HINT=LATENCY",
     "1x2 NO [0: 0 1] threads: a quota of 2.5 processors. streams: 1 node. binding: a quota of 2.5 "
     "processors. hyper-threading: one inference is faster with a thread per core (PERFORMANCE_HINT)."},
    {"quota0.5", "", "1x1 NO [0: 0] threads: a quota of 0.5 processors. binding: a quota of 0.5 processors."},
    {"quota0.5", "CPU_THROUGHPUT_STREAMS=2",
     "2x1 NO [0: 0; 0: 1] threads: 2 streams of 1 thread each. binding: a quota of 0.5 processors. ! "
     "CPU_THROUGHPUT_STREAMS: 2 is more than a quota of 0.5 processors: threads will wait for each other"},
    {"quota0.5", "CPU_THREADS_NUM=2 CPU_THROUGHPUT_STREAMS=2",
     "2x1 NO [0: 0; 0: 1] binding: a quota of 0.5 processors. ! CPU_THREADS_NUM: 2 is more than a quota of "
     "0.5 processors: threads will wait for each other"},
    {"quota1.5", "", "1x1 NO [0: 0] threads: a quota of 1.5 processors. binding: a quota of 1.5 processors."},
    {"quota12", "", "1x8 YES [0: 0 1 2 3 4 5 6 7]"},
    {"mask", "",
     "1x6 YES [-1: 0 1 2 3 4 5] hyper-threading: one inference is faster with a thread per core on several "
     "sockets."},
    {"mask", "CPU_THROUGHPUT_STREAMS=2",
     "2x3 YES [0: 0 1 2; -1: 3 4 5] hyper-threading: one inference is faster with a thread per core on "
     "several sockets."},
    {"mask", "CPU_THREADS_NUM=8",
     "1x6 YES [-1: 0 1 2 3 4 5] threads: the process may use 6 processors. hyper-threading: one inference is "
     "faster with a thread per core on several sockets. ! CPU_THREADS_NUM: 8 wanted: the process may use 6 "
     "processors"},
    {"mask", "CPU_THROUGHPUT_STREAMS=NUMA",
     "2x3 YES [0: 0 1 2; -1: 3 4 5] streams: 2 nodes. hyper-threading: one inference is faster with a thread "
     "per core on several sockets."},
    {"taken", "",
     "1x4 NO [0: 0 1 2 3] binding: other processes of lamina have bound their threads to these processors."},
    {"taken", "CPU_THREADS_NUM=2", "1x2 YES [0: 1 3]"},
    {"taken", "CPU_BIND_THREAD=YES", "1x4 YES [0: 0 1 2 3]"},
    {"taken", "CPU_THREADS_NUM=2 CPU_BIND_THREAD=YES", "1x2 YES [0: 1 3]"},
    {"taken", "CPU_THREADS_NUM=2 CPU_THROUGHPUT_STREAMS=2", "2x1 YES [0: 1; 0: 3]"},
    {"two8", "CPU_THREADS_NUM=32 CPU_THROUGHPUT_STREAMS=3",
     "3x10 YES [0: 0 16 1 17 2 3 4 5 6 7; 1: 8 24 9 25 10 11 12 13 14 15; -1: 18 19 20 21 22 23 26 27 28 29] "
     "threads: 3 streams of 10 threads each. ! CPU_THREADS_NUM: 32 wanted: 3 streams of 10 threads each"},
    {"two8", "CPU_THREADS_NUM=40 CPU_THROUGHPUT_STREAMS=3",
     "3x10 YES [0: 0 16 1 17 2 3 4 5 6 7; 1: 8 24 9 25 10 11 12 13 14 15; -1: 18 19 20 21 22 23 26 27 28 29] "
     "threads: the process may use 32 processors, 3 streams of 10 threads each. ! CPU_THREADS_NUM: 40 "
     "wanted: the process may use 32 processors, 3 streams of 10 threads each"},
    {"tight8", "CPU_THROUGHPUT_STREAMS=8",
     "8x1 NO [0: 0; 1: 8; 0: 1; 1: 9; 0: 2; 1: 10; 0: 3; 1: 11] threads: 8 streams of 1 thread each. "
     "binding: a quota of 2.5 processors. ! CPU_THROUGHPUT_STREAMS: 8 is more than a quota of 2.5 "
     "processors: threads will wait for each other"},
    {"tight8", "CPU_THREADS_NUM=8 CPU_THROUGHPUT_STREAMS=8",
     "8x1 NO [0: 0; 1: 8; 0: 1; 1: 9; 0: 2; 1: 10; 0: 3; 1: 11] binding: a quota of 2.5 processors. ! "
     "CPU_THREADS_NUM: 8 is more than a quota of 2.5 processors: threads will wait for each other"},
    {"tight8", "CPU_THROUGHPUT_STREAMS=NUMA",
     "2x1 NO [0: 0; 1: 8] threads: a quota of 2.5 processors. streams: 2 nodes. binding: a quota of 2.5 "
     "processors. hyper-threading: one inference is faster with a thread per core on several sockets."},
    {"quota5.5", "CPU_THROUGHPUT_STREAMS=2",
     "2x2 NO [0: 0 1; 0: 2 3] threads: a quota of 5.5 processors, 2 streams of 2 threads each. binding: a "
     "quota of 5.5 processors."},
    {"quota12", "CPU_THROUGHPUT_STREAMS=13",
     "13x1 NO [0: 0; 0: 1; 0: 2; 0: 3; 0: 4; 0: 5; 0: 6; 0: 7; 0: 0; 0: 1; 0: 2; 0: 3; 0: 4] threads: 13 "
     "streams of 1 thread each. binding: more threads than processors. ! CPU_THROUGHPUT_STREAMS: 13 is more "
     "than a quota of 12 processors: threads will wait for each other"},
    {"half1", "", "1x1 NO [0: 0] binding: a quota of 0.5 processors."},
    {"half1", "CPU_BIND_THREAD=YES", "1x1 YES [0: 0]"},
    {"single6", "",
     "1x6 YES [0: 0 1 2 3 4 5] threads: performance cores alone are faster for one inference. "
     "hyper-threading: one inference is faster with a thread per core on hybrid processors."},
    {"single6", "CPU_THREADS_NUM=8",
     "1x8 YES [0: 0 1 2 3 4 5 6 7] hyper-threading: one inference is faster with a thread per core on hybrid "
     "processors."},
    {"single6", "CPU_THREADS_NUM=8 ENABLE_HYPER_THREADING=NO", "1x8 YES [0: 0 1 2 3 4 5 6 7]"},
    {"one1", "", "1x1 YES [0: 0]"},
    {"one1", "CPU_THROUGHPUT_STREAMS=2",
     "2x1 NO [0: 0; 0: 0] threads: 2 streams of 1 thread each. binding: more threads than processors."},
    {"one1", "CPU_THROUGHPUT_STREAMS=0",
     "0x1 NO [] binding: without streams the work is done by the callers' threads."},
    {"one1", "CPU_THREADS_NUM=2",
     "1x1 YES [0: 0] threads: the process may use 1 processor. ! CPU_THREADS_NUM: 2 wanted: the process may "
     "use 1 processor"},
};

}  // namespace lamina
