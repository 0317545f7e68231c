/* Calls the hand-written assembly of assembly_cfi.S and assembly_bare.S, and prints what came out. */
#include "corpus.h"

typedef long function(long, long);

/* assembly_cfi.S */
function asm_gcd, asm_sum_to, asm_sum_to_ten, asm_clamp, asm_clamp_low, asm_abs_or_tail, asm_dispatch, asm_dispatch_wide;
function asm_weight;
function asm_hash, asm_hash_other, asm_frame, asm_only_data;
/* assembly_bare.S */
function bare_twice, bare_chain, bare_loop, bare_second_entry, bare_switch, bare_shared_a, bare_shared_b, bare_counted;
extern function *const bare_operations[3];

int main(void) {
    static function *const functions[] = {
        asm_gcd, asm_sum_to, asm_sum_to_ten, asm_clamp, asm_clamp_low, asm_abs_or_tail, asm_dispatch,
        asm_dispatch_wide, asm_weight, asm_hash, asm_hash_other, asm_frame};
    for (long i = 0; i < 60; i++) {
        for (unsigned k = 0; k < sizeof functions / sizeof *functions; k++) DO(functions[k](i, i + 3));
        DO(bare_twice(i, 1) + bare_chain(i, 2) + bare_loop(i, 3) + bare_second_entry(i, 4) + bare_switch(i % 7, 5));
        DO(bare_shared_a(i, 6) + bare_shared_b(i, 7) + bare_counted(i, 8) + bare_operations[i % 3](i, 9));
    }
    return report("assembly");
}
