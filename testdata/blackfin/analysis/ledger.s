/* A payload for `Site::call`: keeps a sum of weighted values, and prints it.
   bfin-elf-as ledger.s -o ledger.o */
	.text
	.global _enter
_enter:				/* R0: weight, R1: value */
	R0 *= R1;
	P1.L = _sum; P1.H = _sum;
	R1 = [P1]; R1 = R1 + R0; [P1] = R1;
	RTS;

	.global _keep
_keep:				/* keeps nine arguments: three in registers, six on the stack */
	P1.L = _kept; P1.H = _kept;
	[P1++] = R0; [P1++] = R1; [P1++] = R2;
	P2 = SP; P2 += 12;
	P0 = 6;
	LSETUP (1f, 2f) LC0 = P0;
1:	R0 = [P2++];
2:	[P1++] = R0;
	RTS;

	.global _tell
_tell:				/* prints the sum in decimal digits */
	P1.L = _sum; P1.H = _sum; R0 = [P1];
	P1.L = _text; P1.H = _text;
	P2.L = _powers; P2.H = _powers;
	P0 = 10; R7 = 0;
	LSETUP (1f, 4f) LC0 = P0;
1:	R1 = [P2++]; R2 = 48;
2:	CC = R1 <= R0 (IU);
	IF !CC JUMP 3f;
	R0 = R0 - R1; R2 += 1;
	JUMP 2b;
3:	R7 = R2;
4:	B[P1++] = R7;
	R2 = 10; B[P1] = R2;
	P2.L = _text; P2.H = _text;		/* leading zeros but the last digit */
	R1 = 11; R2 = 48;
5:	R0 = B[P2] (Z);
	CC = R0 == R2;
	IF !CC JUMP 6f;
	P2 += 1; R1 += -1;
	R0 = 2; CC = R1 == R0;
	IF !CC JUMP 5b;
6:	P1.L = _block; P1.H = _block;
	R0 = 1; [P1] = R0; R0 = P2; [P1 + 4] = R0; [P1 + 8] = R1;
	P0 = 5; R0 = P1;			/* write */
	EXCPT 0;
	RTS;

	.section .rodata
	.align 4
_powers: .long 1000000000, 100000000, 10000000, 1000000, 100000, 10000, 1000, 100, 10, 1
	.bss
	.align 4
	.global _kept
_kept:	.space 36
_sum:	.space 4
_block:	.space 12
_text:	.space 12
