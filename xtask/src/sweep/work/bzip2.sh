head -c 2000000 "$INPUT" > data
for level in 1 9; do
    bzip2 -c -$level data > data.bz2
    sha256sum data.bz2
    bzip2 -dc data.bz2 | cmp - data
done
head -c 100000 data.bz2 > cut.bz2
bzip2 -t cut.bz2 || echo "status $?"
