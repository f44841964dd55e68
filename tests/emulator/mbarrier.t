# Every thread of two warps arrives; the other warp's words are there after the wait. The phase is told by its parity.
-- launch 1 64 320
-- target sm_90a
-- kernel
mov.u32 %r3, smem;
shl.b32 %r2, %r1, 2;
add.u32 %r4, %r3, %r2;
setp.eq.u32 %p1, %r1, 0;
@%p1 mbarrier.init.shared::cta.b64 [%r3+256], 64;
bar.sync 0;
st.shared.u32 [%r4], %r1;
mbarrier.arrive.shared::cta.b64 _, [%r3+256];
wait:
mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r3+256], 0;
@!%p2 bra wait;
xor.b32 %r5, %r2, 128;
add.u32 %r5, %r3, %r5;
ld.shared.u32 %r6, [%r5];
mbarrier.arrive.shared::cta.b64 _, [%r3+256];
again:
mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 %p2, [%r3+256], 1, 1000;
@!%p2 bra again;
st.shared.u32 [%r4], %r6;
bar.sync 0;
@%p1 mbarrier.inval.shared::cta.b64 [%r3+256];
mul.wide.u32 %rd3, %r1, 4;
add.u64 %rd3, %rd2, %rd3;
st.global.u32 [%rd3], %r6;
-- out 32 33 34 35 36
-- mutate mbarrier | @%p1 mbarrier.init.shared::cta.b64 [%r3+256], 64;\n |  | there is no mbarrier at shared offset 256
-- mutate mbarrier,shared-race | bar.sync 0;\n |  | mbarrier at
-- mutate shared-race,unwritten-read | wait:\nmbarrier.try_wait.parity.shared | wait:\nmbarrier.try_wait.parity.relaxed.cta.shared
-- mutate shared-race,deadlock | [%r3+256], 1, 1000; | [%r3+256], 0, 1000;
-- mutate shared-race,unwritten-read | mbarrier.arrive.shared::cta.b64 _, [%r3+256];\nwait | mbarrier.arrive.relaxed.cta.shared::cta.b64 _, [%r3+256];\nwait
-- mutate deadlock | [%r3+256], 64; | [%r3+256], 65; | phase 0 (parity 0) of the mbarrier at shared offset 256, for which 1 of 65 arrivals and 0 bytes are due
-- mutate shared-race,unwritten-read,deadlock | [%r3+256], 0; | [%r3+256], 1;
-- mutate mbarrier | [%r3+256], 64; | [%r3+256], 0; | 1 to 1048575 are possible
-- mutate mbarrier | [%r3+256], 0; | [%r3+256], 2; | waits for parity 2
-- mutate misaligned | init.shared::cta.b64 [%r3+256] | init.shared::cta.b64 [%r3+260] | not a multiple of 8
-- mutate out-of-bounds | init.shared::cta.b64 [%r3+256] | init.shared::cta.b64 [%r3+320] | the CTA has 320 bytes
-- mutate mbarrier | bar.sync 0;\nst.shared | @%p1 mbarrier.init.shared::cta.b64 [%r3+256], 64;\nbar.sync 0;\nst.shared | again; mbarrier.inval
-- mutate mbarrier | ld.shared.u32 %r6, [%r5]; | ld.shared.u32 %r6, [%r3+260]; | reads the mbarrier at shared offset 256 as if
-- mutate mbarrier | st.shared.u32 [%r4], %r1; | st.shared.u32 [%r3+256], 0; | writes the mbarrier
-- mutate mbarrier | st.shared.u32 [%r4], %r6;\nbar.sync 0;\n@%p1 mbarrier.inval.shared::cta.b64 [%r3+256]; | @%p1 mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r3+256], 16;\n@%p1 mbarrier.inval.shared::cta.b64 [%r3+256]; | waits for 16 bytes

# States, counts, generic addresses; test_wait may be polled; a dropped arrival is not expected again.
-- launch 1 64 64
-- target sm_90a
-- kernel
mov.u32 %r3, smem;
cvt.u64.u32 %rd5, %r3;
cvta.shared.u64 %rd5, %rd5;
setp.eq.u32 %p1, %r1, 0;
setp.eq.u32 %p3, %r1, 40;
mov.u32 %r7, 0;
@%p1 mbarrier.init.b64 [%rd5], 3;
bar.sync 0;
@!%p1 bra second;
mbarrier.arrive.release.cta.b64 %rd6, [%rd5], 2;
one:
mbarrier.test_wait.b64 %p2, [%rd5], %rd6;
@!%p2 bra one;
mbarrier.arrive.noComplete.shared.b64 %rd6, [%r3], 1;
mbarrier.pending_count.b64 %r8, %rd6;
add.u32 %r7, %r8, 20;
mbarrier.arrive.shared.b64 %rd6, [%r3];
two:
mbarrier.try_wait.acquire.cta.b64 %p2, [%rd5], %rd6, 20;
@!%p2 bra two;
st.global.u32 [%rd2], %r7;
second:
@!%p3 bra third;
mbarrier.arrive_drop.shared.b64 %rd7, [%r3];
third:
-- out 22
-- mutate deadlock,mbarrier | mbarrier.arrive_drop.shared.b64 %rd7, [%r3]; | mbarrier.arrive.shared.b64 %rd7, [%r3]; | 
-- mutate deadlock | mbarrier.arrive_drop.shared.b64 %rd7, [%r3]; |  | polls on and on
-- mutate mbarrier | noComplete.shared.b64 %rd6, [%r3], 1; | noComplete.shared.b64 %rd6, [%r3], 2; | last arrival
-- mutate mbarrier | mbarrier.arrive.release.cta.b64 %rd6, [%rd5], 2; | mbarrier.arrive.release.cta.b64 %rd6, [%rd5], 4; | arrives 4 times

# Bytes hold a phase open: those expected, until they have come. They may come first.
-- launch 1 64 64
-- target sm_90a
-- kernel
mov.u32 %r3, smem;
setp.eq.u32 %p1, %r1, 0;
@%p1 mbarrier.init.shared.b64 [%r3], 2;
fence.mbarrier_init.release.cluster;
bar.sync 0;
setp.lt.u32 %p4, %r1, 32;
@!%p4 bra waiter;
@!%p1 bra done;
st.shared.u32 [%r3+8], 7;
mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%r3], 48;
mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [%r3], 32;
bra done;
waiter:
setp.eq.u32 %p1, %r1, 32;
@%p1 mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r3], 16;
@%p1 mbarrier.arrive.shared.b64 _, [%r3];
wait:
mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 %p2, [%r3], 0;
@!%p2 bra wait;
ld.shared.u32 %r6, [%r3+8];
@%p1 st.global.u32 [%rd2], %r6;
done:
-- out 7
-- mutate deadlock | [%r3], 48; | [%r3], 40; | for which 0 of 2 arrivals and 8 bytes are due
-- mutate mbarrier | [%r3], 48; | [%r3], 64; | 16 bytes more arrive
-- mutate mbarrier | [%r3], 32; | [%r3], 0x200000; | expects 2097152 bytes
-- mutate mbarrier | mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%r3], 48; | mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r3], 0xfffff;\nmbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r3], 0xfffff; | it can count to 1048575

-- launch 1 32 0
-- kernel
mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], 32;
-- refused needs .target sm_90

# The lanes of one wait may wait for several mbarriers; each tells of its own arrivals.
-- launch 1 96 64
-- target sm_90a
-- kernel
mov.u32 %r3, smem;
setp.eq.u32 %p1, %r1, 0;
@%p1 mbarrier.init.shared::cta.b64 [%r3], 1;
@%p1 mbarrier.init.shared::cta.b64 [%r3+8], 1;
bar.sync 0;
setp.lt.u32 %p3, %r1, 32;
@%p3 bra waiter;
shr.u32 %r4, %r1, 5;
sub.u32 %r5, %r4, 1;
mad.lo.u32 %r5, %r5, 8, %r3;
and.b32 %r6, %r1, 31;
setp.eq.u32 %p4, %r6, 0;
@%p4 st.shared.u32 [%r5+16], %r4;
@%p4 mbarrier.arrive.shared::cta.b64 _, [%r5];
bra done;
waiter:
and.b32 %r7, %r1, 8;
add.u32 %r7, %r7, %r3;
wait:
mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r7], 0;
@!%p2 bra wait;
ld.shared.u32 %r8, [%r3+16];
ld.shared.u32 %r9, [%r3+24];
mad.lo.u32 %r8, %r8, 10, %r9;
@%p1 st.global.u32 [%rd2], %r8;
done:
-- out 12
-- mutate shared-race,unwritten-read | and.b32 %r7, %r1, 8; | mov.u32 %r7, 8;
