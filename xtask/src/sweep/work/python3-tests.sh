# The regression tests of CPython. Their log has times in it: the verdict of each counts.
for module in json re struct dict list set heapq itertools decimal zlib bytes generators exceptions sort unicodedata; do
    if python3 -m test "test_$module" > log 2>&1; then
        echo "test_$module passed"
    else
        echo "test_$module failed"
    fi
done
