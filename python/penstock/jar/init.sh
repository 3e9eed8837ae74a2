#!/bin/sh
# The first program in the jar: a user-mode Linux whose root is that of the host, read only. Makes what a run needs, runs
# the program that JAR_PROGRAM names with the host's JAR_DIRECTORY, the only place that it can write to, and switches off.
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export PATH TMPDIR=/run
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev 2>/dev/null
mount -t tmpfs tmpfs /run
mkdir -p /run/netns /run/out /dev/net
[ -c /dev/net/tun ] || mknod /dev/net/tun c 10 200
mount -t hostfs none /run/out -o "$JAR_DIRECTORY"
ip link set lo up
"$JAR_PYTHON" -I "$JAR_PROGRAM" /run/out
umount /run/out
# Power off: LINUX_REBOOT_CMD_POWER_OFF.
exec "$JAR_PYTHON" -I -c 'import ctypes; ctypes.CDLL(None).reboot(0x4321FEDC)'
