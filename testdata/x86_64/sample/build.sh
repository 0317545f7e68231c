#!/bin/sh
# How sample.elf was made (gcc of Debian; the file is committed because the golden files state its addresses).
set -eu
cd "$(dirname "$0")"
flags="-O2 -g -ffile-prefix-map=$PWD=. -fcf-protection=none"
for source in sample.c other.c; do gcc $flags -c "$source" -o "/tmp/lancet-${source%.*}.o"; done
g++ $flags -fno-exceptions -fno-rtti -c areas.cc -o /tmp/lancet-areas.o
gcc -c spiral.S -o /tmp/lancet-spiral.o
gcc /tmp/lancet-sample.o /tmp/lancet-other.o /tmp/lancet-areas.o /tmp/lancet-spiral.o -o sample.elf
rm /tmp/lancet-sample.o /tmp/lancet-other.o /tmp/lancet-areas.o /tmp/lancet-spiral.o
