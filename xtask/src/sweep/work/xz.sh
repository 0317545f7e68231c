head -c 1500000 "$INPUT" > data
for options in -1 "-6 --check=crc32" "-2 --threads=2 --block-size=400000"; do
    xz -k -f $options data
    sha256sum data.xz
    xz -dc data.xz | cmp - data
    xz --list --robot data.xz
done
head -c 100000 data.xz > cut.xz
xz -t cut.xz || echo "status $?"
