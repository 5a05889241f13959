"""The numbers of system calls on the processors that we know."""

from __future__ import annotations

ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
CALLS = """
    acct 163 89; add_key 248 217; adjtimex 159 171; bpf 321 280; chmod 90 -; chown 92 -; chroot 161 51;
    clock_adjtime 305 266; clock_settime 227 112; clone 56 220; connect 42 203; creat 85 -; delete_module 176 106;
    fanotify_init 300 262; fchmod 91 52;
    fchown 93 55; fchownat 260 54; futimesat 261 -; lchown 94 -; utime 132 -; utimes 235 -; utimensat 280 88;
    fchmodat 268 53; fcntl 72 25; finit_module 313 273; init_module 175 105; inotify_add_watch 254 27;
    inotify_init1 294 26; inotify_rm_watch 255 28; ioctl 16 29; ioperm 173 -; iopl 172 -; ioprio_set 251 30;
    kexec_file_load 320 294; kexec_load 246 104; keyctl 250 219; kill 62 129; lookup_dcookie 212 18; mknod 133 -;
    mknodat 259 33; mount 165 40; mq_open 240 180; mq_unlink 241 181; msgctl 71 187; msgget 68 186; msgrcv 70 188;
    msgsnd 69 189; open 2 -; open_by_handle_at 304 265; openat 257 56; perf_event_open 298 241; pivot_root 155 41;
    prlimit64 302 261; quotactl 179 60; reboot 169 142; renameat2 316 276; request_key 249 218;
    rt_sigqueueinfo 129 138; rt_tgsigqueueinfo 297 240;
    sched_setaffinity 203 122; sched_setattr 314 274; sched_setparam 142 118; sched_setscheduler 144 119;
    semctl 66 191; semget 64 190; semop 65 193; semtimedop 220 192; setdomainname 171 162; sethostname 170 161;
    setns 308 268; setpriority 141 140; setrlimit 160 164; settimeofday 164 170; shmat 30 196; shmctl 31 195;
    shmget 29 194; socket 41 198; socketpair 53 199; swapoff 168 225; swapon 167 224;
    syslog 103 116; tgkill 234 131; tkill 200 130;
    umount2 166 39; unshare 272 97; userfaultfd 323 282; vhangup 153 58; pidfd_getfd 438 438;
    pidfd_send_signal 424 424;
    io_uring_setup 425 425; io_uring_enter 426 426; io_uring_register 427 427; open_tree 428 428; move_mount 429 429;
    fsopen 430 430; fsconfig 431 431; fsmount 432 432; fspick 433 433; clone3 435 435; openat2 437 437;
    mount_setattr 442 442; quotactl_fd 443 443; fchmodat2 452 452; setxattrat 463 463; removexattrat 466 466;
    open_tree_attr 467 467; file_setattr 469 469; setxattr 188 5; lsetxattr 189 6; fsetxattr 190 7; removexattr 197 14;
    lremovexattr 198 15; fremovexattr 199 16
"""
"""The number of each call on both; calls since Linux 5.1 have the same number everywhere."""


def numbers_on(machine: str) -> dict[str, int]:
    """The calls that we know, by name; some are missing on a processor."""
    column = 1 + list(ARCHITECTURES).index(machine)
    rows = [entry.split() for entry in CALLS.split(";")]
    return {row[0]: int(row[column]) for row in rows if row[column] != "-"}
