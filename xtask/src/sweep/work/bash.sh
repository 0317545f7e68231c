bash <<'BASH'
shopt -s extglob globstar
declare -A seen; declare -a primes
for ((n = 2; n < 3000; n++)); do
    for p in "${primes[@]}"; do ((p * p > n)) && break; ((n % p == 0)) && continue 2; done
    primes+=("$n")
done
echo "${#primes[@]} primes, the last ${primes[-1]}"
while read -r -d ' ' word; do ((seen[$word]++)); done <<< "$(printf 'x%d ' {1..500} {100..300})"
for word in "${!seen[@]}"; do echo "$word ${seen[$word]}"; done | sort | cksum
fib() { (($1 < 2)) && { echo "$1"; return; }; echo $(($(fib $(($1 - 1))) + $(fib $(($1 - 2))))); }
echo "fib $(fib 9)"
text=$(printf 'The %s fox. ' {1..200}); echo "${text//fox/dog}" | cksum; echo "${text^^}" | cksum; echo "${text##*+([0-9])}"
[[ "key=value" =~ ^([a-z]+)=(.*)$ ]] && echo "${BASH_REMATCH[1]} ${BASH_REMATCH[2]}"
trap 'echo trapped' USR1; kill -USR1 $$; trap 'echo bye' EXIT
mkdir -p a/b/c; touch a/{1..5}.x a/b/{1..5}.y; echo **/*.@(x|y)
sleep 0.1 & wait $!; echo "waited $?"
diff <(seq 1 10) <(seq 1 2 10) || echo "diff $?"
(exit 9); echo "status $?"; set -o pipefail; false | true; echo "pipe $?"
printf '%q %05d %x %s\n' 'a b' 42 255 "$((2 ** 40 % 1000003))"
BASH
bash -c 'exec false' || echo "status $?"
bash -c 'if' || echo "status $?"
