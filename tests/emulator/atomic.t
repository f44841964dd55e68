# Sums of integers by four CTAs: the order does not show. out is filled before with atom.exch by the first ones only.
-- launch 1 64 0
-- kernel
setp.eq.u32 %p1, %r1, 0;
@%p1 st.global.v4.u32 [%rd2], {%r1, %r1, %r1, %r1};
@%p1 st.global.v4.u32 [%rd2+16], {%r1, %r1, %r1, %r1};
bar.sync 0;
atom.global.add.u32 %r3, [%rd2], 1;
red.global.max.s32 [%rd2+4], %r1;
sub.u32 %r4, %r1, 60;
atom.global.min.s32 %r5, [%rd2+8], %r4;
red.relaxed.gpu.global.or.b32 [%rd2+12], 0x100;
atom.add.u64 %rd7, [%rd2+16], 0x100000001;
atom.global.inc.u32 %r6, [%rd2+24], 9;
setp.eq.u32 %p2, %r1, 5;
@%p2 atom.global.cas.b32 %r7, [%rd2+28], 0, 77;
-- out 64 63 -60 0x100 64 64 4 77
-- mutate unwritten-read | atom.global.add.u32 %r3, [%rd2] | atom.global.add.u32 %r3, [%rd2+32]
