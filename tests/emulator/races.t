# Two warps exchange words through shared memory; a barrier lies between.
-- launch 1 64 256
-- kernel
shl.b32 %r2, %r1, 2;
mov.u32 %r3, smem;
add.u32 %r4, %r3, %r2;
st.shared.u32 [%r4], %r1;
bar.sync 0;
xor.b32 %r5, %r2, 128;
add.u32 %r5, %r3, %r5;
ld.shared.u32 %r6, [%r5];
bar.sync 0;
st.shared.u32 [%r4], %r6;
cvt.u64.u32 %rd3, %r2;
add.u64 %rd3, %rd2, %rd3;
st.global.u32 [%rd3], %r6;
-- out 32 33 34 35 36
-- mutate shared-race,unwritten-read | bar.sync 0;\n | 
-- mutate shared-race | bar.sync 0;\nst.shared.u32 [%r4], %r6; | st.shared.u32 [%r4], %r6; | which warp

# Named barriers of two pairs of warps: each orders its own pair only.
-- launch 1 128 512
-- kernel
shl.b32 %r2, %r1, 2;
mov.u32 %r3, smem;
add.u32 %r4, %r3, %r2;
st.shared.u32 [%r4], %r1;
shr.u32 %r7, %r1, 6;
add.u32 %r7, %r7, 1;
bar.sync %r7, 64;
xor.b32 %r5, %r2, 128;
add.u32 %r5, %r3, %r5;
ld.shared.u32 %r6, [%r5];
cvt.u64.u32 %rd3, %r2;
add.u64 %rd3, %rd2, %rd3;
st.global.u32 [%rd3], %r6;
-- out 32 33 34
-- mutate shared-race,unwritten-read | xor.b32 %r5, %r2, 128; | xor.b32 %r5, %r2, 256;

# A producer warp arrives without waiting; the consumer waits. The other way round is not ordered.
-- launch 1 64 256
-- kernel
setp.lt.u32 %p1, %r1, 32;
and.b32 %r2, %r1, 31;
shl.b32 %r2, %r2, 2;
mov.u32 %r3, smem;
add.u32 %r4, %r3, %r2;
@!%p1 bra consumer;
st.shared.u32 [%r4], %r1;
bar.arrive 3, 64;
st.shared.u32 [%r4+128], %r1;
bra done;
consumer:
bar.sync 3, 64;
ld.shared.u32 %r6, [%r4];
cvt.u64.u32 %rd3, %r2;
add.u64 %rd3, %rd2, %rd3;
st.global.u32 [%rd3], %r6;
done:
-- out 0 1 2 3
-- mutate shared-race | bar.arrive 3, 64; | bar.arrive 3, 64;\nst.shared.u32 [%r4], %r1;

# Readers of two warps at different times, then a writer: it must come after both.
-- launch 1 96 64
-- kernel
mov.u32 %r3, smem;
shr.u32 %r2, %r1, 5;
setp.eq.u32 %p1, %r1, 0;
setp.eq.u32 %p2, %r2, 2;
setp.lt.u32 %p3, %r2, 2;
setp.eq.u32 %p4, %r2, 0;
setp.eq.u32 %p5, %r2, 1;
@%p1 st.shared.u32 [%r3], 77;
bar.sync 0;
@!%p4 bra not0;
ld.shared.u32 %r6, [%r3];
bar.arrive 1, 64;
not0:
@!%p5 bra not1;
ld.shared.u32 %r6, [%r3];
bar.arrive 2, 64;
not1:
@!%p2 bra not2;
bar.sync 1, 64;
bar.sync 2, 64;
setp.eq.u32 %p6, %r1, 64;
@%p6 st.shared.u32 [%r3], 78;
mov.u32 %r6, 79;
not2:
mul.wide.u32 %rd3, %r1, 4;
add.u64 %rd3, %rd2, %rd3;
st.global.u32 [%rd3], %r6;
-- out 77 77
-- mutate shared-race | bar.arrive 2, 64;\nnot1: | bar.arrive 2, 64;\nld.shared.u32 %r6, [%r3];\nnot1:

# Two halves of a word belong to two warps: no race, as the shadow is as fine as the narrowest access.
-- launch 1 64 128
-- kernel
and.b32 %r2, %r1, 31;
shr.u32 %r5, %r1, 5;
shl.b32 %r2, %r2, 2;
mad.lo.u32 %r4, %r5, 2, %r2;
mov.u32 %r3, smem;
add.u32 %r4, %r3, %r4;
cvt.u16.u32 %h1, %r1;
st.shared.u16 [%r4], %h1;
bar.sync 0;
add.u32 %r3, %r3, %r2;
ld.shared.u32 %r6, [%r3];
mul.wide.u32 %rd3, %r1, 4;
add.u64 %rd3, %rd2, %rd3;
st.global.u32 [%rd3], %r6;
-- out 0x200000 0x210001
-- mutate shared-race | mad.lo.u32 %r4, %r5, 2, %r2; | mad.lo.u32 %r4, %r5, 0, %r2;

# Lanes that store the same value to one place agree; different values do not.
-- launch 1 32 64
-- kernel
mov.u32 %r3, smem;
mov.u32 %r2, 5;
st.shared.u32 [%r3], %r2;
ld.shared.u32 %r6, [%r3];
mul.wide.u32 %rd3, %r1, 4;
add.u64 %rd3, %rd2, %rd3;
st.global.u32 [%rd3], %r6;
-- out 5 5
-- mutate lane-conflict | st.shared.u32 [%r3], %r2; | st.shared.u32 [%r3], %r1;

# Atomics do not race with each other, but a plain store does.
-- launch 1 128 64
-- kernel
mov.u32 %r3, smem;
setp.eq.u32 %p1, %r1, 0;
@%p1 st.shared.u32 [%r3], 0;
bar.sync 0;
atom.shared.add.u32 %r5, [%r3], 1;
bar.sync 0;
ld.shared.u32 %r6, [%r3];
st.global.u32 [%rd2], %r6;
-- out 128
-- mutate shared-race,unwritten-read | @%p1 st.shared.u32 [%r3], 0;\nbar.sync 0; | @%p1 st.shared.u32 [%r3], 0;
-- mutate shared-race | bar.sync 0;\nld.shared | ld.shared

# Global memory: each CTA has its own words; a barrier orders the warps of a CTA.
-- launch 2 64 0
-- kernel
mov.u32 %r2, %ctaid.x;
mad.lo.u32 %r3, %r2, 64, %r1;
mul.wide.u32 %rd3, %r3, 4;
add.u64 %rd4, %rd2, %rd3;
st.global.u32 [%rd4], %r3;
bar.sync 0;
xor.b64 %rd5, %rd3, 128;
add.u64 %rd5, %rd2, %rd5;
ld.global.u32 %r4, [%rd5];
bar.sync 1;
st.global.u32 [%rd4], %r4;
-- out 32 33 34
-- mutate global-race | mad.lo.u32 %r3, %r2, 64, %r1; | mad.lo.u32 %r3, %r2, 32, %r1;
-- mutate global-race,unwritten-read | bar.sync 0;\n | 
-- mutate global-race | xor.b64 %rd5, %rd3, 128; | xor.b64 %rd5, %rd3, 256;

# Order is handed on: warp 0 before warp 1 at one barrier, warp 1 before warp 2 at another.
-- launch 1 96 64
-- kernel
mov.u32 %r3, smem;
shr.u32 %r2, %r1, 5;
setp.eq.u32 %p1, %r1, 0;
setp.eq.u32 %p2, %r2, 2;
mov.u32 %r6, 0;
@%p1 st.shared.u32 [%r3], 55;
@%p2 bra third;
bar.sync 1, 64;
setp.eq.u32 %p3, %r2, 1;
@!%p3 bra out;
third:
bar.sync 2, 64;
@!%p2 bra out;
ld.shared.u32 %r6, [%r3];
st.global.u32 [%rd2], %r6;
out:
-- out 55
-- mutate shared-race,unwritten-read | bar.sync 1, 64;\n | 

# Two CTAs that store different values to one place are reported; relaxed atomics elsewhere do not excuse it.
-- launch 2 32 0
-- kernel
mov.u32 %r2, %ctaid.x;
red.relaxed.gpu.global.add.u32 [%rd1], 1;
mul.wide.u32 %rd3, %r2, 128;
mul.wide.u32 %rd4, %r1, 4;
add.u64 %rd3, %rd3, %rd4;
add.u64 %rd3, %rd2, %rd3;
st.global.u32 [%rd3], %r2;
-- out 0 0
-- mutate global-race | mul.wide.u32 %rd3, %r2, 128; | mul.wide.u32 %rd3, %r2, 0;

# CTAs that change words in place, each its own: a load of another's words races whichever comes first.
-- launch 16 32 0
-- kernel
mov.u32 %r2, %ctaid.x;
shl.b32 %r3, %r2, 7;
mov.u32 %r9, %r3;
mad.lo.u32 %r3, %r1, 4, %r3;
mad.lo.u32 %r9, %r1, 4, %r9;
cvt.u64.u32 %rd3, %r3;
cvt.u64.u32 %rd4, %r9;
add.u64 %rd5, %rd1, %rd4;
ld.global.u32 %r4, [%rd5];
add.u32 %r4, %r4, 1;
add.u64 %rd5, %rd1, %rd3;
st.global.u32 [%rd5], %r4;
add.u64 %rd5, %rd2, %rd3;
st.global.u32 [%rd5], %r4;
-- out 1 2 3 4
-- mutate global-race | mov.u32 %r9, %r3; | xor.b32 %r9, %r3, 128;
-- mutate global-race | mov.u32 %r9, %r3; | mov.u32 %r9, 256;
-- mutate unwritten-read | add.u64 %rd5, %rd1, %rd4;\nld.global.u32 %r4, [%rd5]; | xor.b64 %rd4, %rd4, 128;\nadd.u64 %rd5, %rd2, %rd4;\nld.global.u32 %r4, [%rd5];
-- mutate global-race | ld.global.u32 %r4, [%rd5];\n | ld.global.u32 %r4, [%rd5];\nxor.b32 %r3, %r3, 128;\ncvt.u64.u32 %rd3, %r3;
-- mutate unwritten-read | ld.global.u32 %r4, [%rd5]; | ld.global.u32 %r4, [%rd5];\nld.global.u32 %r5, [%rd2+4000];

# The same by cp.async.
-- launch 4 32 512
-- kernel
mov.u32 %r2, %ctaid.x;
shl.b32 %r3, %r2, 9;
mad.lo.u32 %r3, %r1, 16, %r3;
mov.u32 %r5, smem;
mad.lo.u32 %r5, %r1, 16, %r5;
cvt.u64.u32 %rd3, %r3;
mov.u64 %rd4, %rd3;
add.u64 %rd4, %rd1, %rd4;
cp.async.cg.shared.global [%r5], [%rd4], 16;
cp.async.wait_all;
ld.shared.v4.u32 {%r10, %r11, %r12, %r13}, [%r5];
add.u64 %rd4, %rd1, %rd3;
st.global.v4.u32 [%rd4], {%r11, %r12, %r13, %r10};
add.u64 %rd4, %rd2, %rd3;
st.global.v4.u32 [%rd4], {%r11, %r12, %r13, %r10};
-- out 1 2 3 0 5 6 7 4
-- mutate global-race | mov.u64 %rd4, %rd3; | xor.b64 %rd4, %rd3, 512;
-- mutate unwritten-read | mov.u64 %rd4, %rd3;\nadd.u64 %rd4, %rd1, %rd4; | xor.b64 %rd4, %rd3, 512;\nadd.u64 %rd4, %rd2, %rd4;

# CTAs may store the same value to one place, if none reads it. Strong accesses do not race with each other.
-- launch 8 32 0
-- kernel
mov.u32 %r2, %ctaid.x;
add.u32 %r3, %r2, 1;
mul.wide.u32 %rd3, %r2, 4;
add.u64 %rd3, %rd2, %rd3;
st.global.u32 [%rd2+256], 7;
red.relaxed.gpu.global.add.u32 [%rd1], 1;
ld.relaxed.gpu.global.u32 %r4, [%rd1];
st.relaxed.gpu.global.u32 [%rd1+64], %r2;
st.global.u32 [%rd3], %r3;
ld.global.u32 %r5, [%rd3];
-- out 1 2 3 4 5 6 7 8
-- mutate global-race | ld.global.u32 %r5, [%rd3]; | ld.global.u32 %r5, [%rd2+256];
-- mutate global-race | st.global.u32 [%rd2+256], 7; | st.global.u32 [%rd2+256], %r2;
-- mutate global-race | ld.relaxed.gpu.global.u32 %r4, [%rd1]; | ld.global.u32 %r4, [%rd1];
-- mutate global-race | st.relaxed.gpu.global.u32 [%rd1+64], %r2; | st.global.u32 [%rd1+64], %r2;
-- mutate global-race | ld.relaxed.gpu.global.u32 %r4, [%rd1]; | ld.global.u32 %r4, [%rd1+64];
-- mutate global-race | st.relaxed.gpu.global.u32 [%rd1+64], %r2; | setp.eq.u32 %p1, %r2, 0;\n@%p1 st.global.u32 [%rd1], 5;
-- mutate global-race | st.relaxed.gpu.global.u32 [%rd1+64], %r2; | setp.eq.u32 %p1, %r2, 3;\n@%p1 st.global.u32 [%rd1+128], 5;\nld.relaxed.gpu.global.u32 %r4, [%rd1+128];

# A CTA waits for the one before it, which takes its time. Where that one fails nobody waits for ever.
-- launch 2 32 128
-- kernel
mov.u32 %r2, %ctaid.x;
setp.eq.u32 %p1, %r2, 1;
setp.eq.u32 %p2, %r1, 0;
mov.u32 %r3, 0;
@%p1 bra wait;
count:
add.u32 %r3, %r3, 1;
setp.lt.u32 %p3, %r3, 100000;
@%p3 bra count;
@%p2 st.release.gpu.global.u32 [%rd1], 77;
bra done;
wait:
ld.acquire.gpu.global.u32 %r4, [%rd1];
setp.ne.u32 %p4, %r4, 77;
@%p4 bra wait;
done:
mad.lo.u32 %r5, %r2, 32, %r1;
mul.wide.u32 %rd3, %r5, 4;
add.u64 %rd3, %rd2, %rd3;
st.global.u32 [%rd3], %r5;
-- out 0 1 2
-- mutate out-of-bounds | @%p2 st.release.gpu.global.u32 [%rd1], 77; | @%p2 st.release.gpu.global.u32 [%rd1-4], 77;

# CTAs one after the other: each takes what the one before has left, and leaves it anew in the same place. Warp 0 waits and
# says so for both; a barrier tells the other one.
-- launch 4 64 128
-- kernel
mov.u32 %r2, %ctaid.x;
mul.wide.u32 %rd3, %r1, 4;
add.u64 %rd3, %rd2, %rd3;
setp.gt.u32 %p1, %r1, 31;
@%p1 bra told;
wait:
ld.acquire.gpu.global.u32 %r4, [%rd1];
setp.ne.u32 %p2, %r4, %r2;
@%p2 bra wait;
told:
bar.sync 0;
mov.u32 %r5, %r1;
setp.eq.u32 %p3, %r2, 0;
@!%p3 ld.global.u32 %r5, [%rd3];
add.u32 %r5, %r5, 10;
st.global.u32 [%rd3], %r5;
bar.sync 0;
add.u32 %r6, %r2, 1;
setp.eq.u32 %p4, %r1, 0;
@%p4 st.release.gpu.global.u32 [%rd1], %r6;
-- out 40 41 42 43
-- mutate global-race,unwritten-read | @%p2 bra wait; | mov.u32 %r7, 0;
-- mutate global-race | ld.acquire.gpu.global.u32 %r4, [%rd1]; | ld.relaxed.gpu.global.u32 %r4, [%rd1]; | nothing to order them
-- mutate global-race | @%p4 st.release.gpu.global.u32 [%rd1], %r6; | @%p4 st.relaxed.gpu.global.u32 [%rd1], %r6;
-- mutate global-race,unwritten-read | told:\nbar.sync 0; | told:
-- mutate global-race,unwritten-read | st.global.u32 [%rd3], %r5;\nbar.sync 0; | st.global.u32 [%rd3], %r5;
-- mutate global-race,unwritten-read | bar.sync 0;\nadd.u32 %r6, %r2, 1; | setp.eq.u32 %p4, %r1, 0;\nadd.u32 %r6, %r2, 1;\n@%p4 st.release.gpu.global.u32 [%rd1], %r6;\nbar.sync 0;\nst.global.u32 [%rd3], %r5;

# Knowledge is handed on: CTA 2 hears of CTA 0 by CTA 1 alone, whose own places are of no interest.
-- launch 3 32 128
-- kernel
mov.u32 %r2, %ctaid.x;
setp.eq.u32 %p1, %r1, 0;
add.u32 %r6, %r2, 1;
mul.wide.u32 %rd3, %r1, 4;
add.u64 %rd3, %rd2, %rd3;
setp.eq.u32 %p3, %r2, 0;
@%p3 bra first;
wait:
ld.acquire.gpu.global.u32 %r4, [%rd1];
setp.ne.u32 %p2, %r4, %r2;
@%p2 bra wait;
setp.eq.u32 %p4, %r2, 1;
@%p4 bra say;
ld.global.u32 %r5, [%rd3];
st.global.u32 [%rd3+512], %r5;
bra done;
first:
st.global.u32 [%rd3], %r1;
say:
@%p1 st.release.gpu.global.u32 [%rd1], %r6;
done:
mov.u32 %r7, 0;
-- out 0 1 2 3
-- mutate global-race,unwritten-read | @%p2 bra wait; | @!%p2 bra go;\nsetp.eq.u32 %p4, %r2, 2;\n@!%p4 bra wait;\ngo:\nmov.u32 %r7, 0;
-- mutate global-race | first:\nst.global.u32 [%rd3], %r1;\nsay:\n@%p1 st.release.gpu.global.u32 [%rd1], %r6; | first:\nst.global.u32 [%rd3], %r1;\n@%p1 st.relaxed.gpu.global.u32 [%rd1], %r6;\nbra done;\nsay:\n@%p1 st.release.gpu.global.u32 [%rd1], %r6; | nothing to order them

# A load that acquires may find what was there before, when it looks first; not where it is known that more has come.
-- launch 2 32 128
-- kernel
mov.u32 %r2, %ctaid.x;
mul.wide.u32 %rd3, %r1, 4;
add.u64 %rd3, %rd2, %rd3;
setp.eq.u32 %p1, %r1, 0;
setp.eq.u32 %p3, %r2, 0;
@%p3 bra first;
wait:
ld.acquire.gpu.global.u32 %r4, [%rd1];
setp.eq.u32 %p2, %r4, 0;
@%p2 bra wait;
ld.acquire.gpu.global.u32 %r5, [%rd1+64];
ld.global.u32 %r6, [%rd1+64];
min.u32 %r5, %r5, %r6;
st.global.u32 [%rd3], %r5;
bra done;
first:
@%p1 st.release.gpu.global.u32 [%rd1+64], 77;
@%p1 st.release.gpu.global.u32 [%rd1], 1;
done:
mov.u32 %r7, 0;
-- out 77 77 77
-- mutate numbers | wait:\nld.acquire.gpu.global.u32 %r4, [%rd1]; | ld.acquire.gpu.global.u32 %r6, [%rd1+64];\nst.global.u32 [%rd3], %r6;\nbra done;\nwait:\nld.acquire.gpu.global.u32 %r4, [%rd1];
-- mutate global-race | @%p2 bra wait; | mov.u32 %r7, 0;
