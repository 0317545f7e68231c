/* An analysis for `lancet rewrite --tool points --object`: counts its calls and sums up the numbers of its points.
   It uses what an analysis may use: data of its own, a hardware loop, a call inside the object, ASTAT.
   bfin-elf-as seen.s -o seen.o */
	.text
	.global _seen
_seen:				/* R0: number of the point, R1: its address */
	[--SP] = RETS;
	P1.L = _calls; P1.H = _calls;
	R2 = [P1]; R2 += 1; [P1] = R2;
	CALL _add;
	P2 = 3; R3 = 0;
	LSETUP (1f, 1f) LC0 = P2;
1:	R3 += 2;
	R2 = [P1 + 8]; R2 = R2 + R3; [P1 + 8] = R2;
	P1.L = _last; P1.H = _last; [P1] = R1;
	RETS = [SP++];
	RTS;
	.section .text.add,"ax",@progbits
_add:	R2 = [P1 + 4]; R2 = R2 + R0; [P1 + 4] = R2;
	RTS;
	.text
	.global _other
_other:	P1.L = _others; P1.H = _others;
	P1 = [P1];		/* a pointer in data */
	R2 = [P1]; R2 += 1; [P1] = R2;
	RTS;

	.data
	.align 4
	.global _calls
_calls:	.long 0			/* calls */
	.long 0			/* sum of the numbers */
	.long 0			/* 6 a call */
_others: .long _count
	.bss
	.align 4
_last:	.space 4
_count:	.space 4
