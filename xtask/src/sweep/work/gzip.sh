head -c 3000000 "$INPUT" > data
for level in 1 6 9; do
    gzip -n -$level < data > data.gz
    sha256sum data.gz
    gzip -dc data.gz | cmp - data
    gzip -tv data.gz
done
# A damaged file must be told as such.
head -c 100000 data.gz > cut.gz
gzip -t cut.gz || echo "status $?"
