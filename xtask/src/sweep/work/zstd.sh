head -c 3000000 "$INPUT" > data
for options in -1 "-12 --long" "-3 -T2"; do
    zstd -q -f $options data -o data.zst
    sha256sum data.zst
    zstd -q -dc data.zst | cmp - data
done
head -c 100000 data.zst > cut.zst
zstd -q -t cut.zst || echo "status $?"
