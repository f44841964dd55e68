# Whole warps, same barrier, same count.
-- launch 1 64 0
-- kernel
mov.u32 %r3, 64;
shr.u32 %r4, %r1, 5;
bar.sync 0;
barrier.sync.aligned 1, %r3;
barrier.cta.sync 2;
setp.lt.u32 %p1, %r1, 40;
bar.red.popc.u32 %r5, 0, %p1;
barrier.cta.red.and.pred %p2, 1, %p1;
barrier.cta.red.or.aligned.pred %p3, 2, 64, %p1;
selp.u32 %r6, 1, 0, %p2;
selp.u32 %r7, 2, 0, %p3;
add.u32 %r5, %r5, %r6;
add.u32 %r5, %r5, %r7;
mul.wide.u32 %rd3, %r1, 4;
add.u64 %rd3, %rd2, %rd3;
st.global.u32 [%rd3], %r5;
-- out 42 42
-- mutate barrier-mismatch | bar.sync 0;\n | setp.ne.u32 %p5, %r1, 3;\n@%p5 bar.sync 0;\n | guarded off
-- mutate barrier-mismatch | bar.sync 0;\n | setp.eq.u32 %p5, %r1, 3;\n@%p5 exit;\nbar.sync 0;\n | have exited
-- mutate barrier-mismatch | bar.sync 0;\n | setp.lt.u32 %p5, %r1, 32;\n@%p5 exit;\nbar.sync 0;\n | has exited
-- mutate barrier-mismatch | bar.sync 0;\n | bar.sync %r4;\n | waits at barrier
-- mutate barrier-mismatch | bar.sync 0;\n | mov.u32 %r3, 32;\nmad.lo.u32 %r3, %r4, 32, %r3;\nbar.sync 1, %r3;\n
-- mutate barrier-mismatch | bar.sync 0;\n | setp.lt.u32 %p5, %r1, 8;\n@%p5 bra x;\nbar.sync 0;\nx:\n
-- mutate barrier-mismatch | bar.sync 0;\n | bar.sync 16;\n | 16 barriers
-- mutate barrier-mismatch | bar.sync 0;\n | bar.sync %r1;\n | disagree
-- mutate barrier-mismatch | bar.sync 0;\n | bar.sync 0, 96;\n | has 64 threads

# Warps that wait for each other, crosswise.
-- launch 1 96 0
-- kernel
shr.u32 %r4, %r1, 5;
setp.eq.u32 %p1, %r4, 2;
@%p1 bra last;
bar.sync 1, 64;
bra out;
last:
bar.arrive 2, 64;
out:
st.global.u32 [%rd2], 1;
-- out 1
-- mutate deadlock | bar.sync 1, 64; | add.u32 %r5, %r4, 4;\nbar.sync %r5, 64; | no warp can go on

# An endless loop is found out.
-- launch 1 32 0
-- kernel
mov.u32 %r2, 0;
loop:
add.u32 %r2, %r2, 1;
setp.lt.u32 %p1, %r2, 1000;
@%p1 bra loop;
st.global.u32 [%rd2], %r2;
-- out 1000
-- mutate step-limit | add.u32 %r2, %r2, 1; | add.u32 %r2, %r2, 0; | endless loop
-- mutate trap | @%p1 bra loop; | @%p1 bra loop;\ntrap;
-- mutate arithmetic | add.u32 %r2, %r2, 1; | div.u32 %r3, %r2, %r2;\nadd.u32 %r2, %r2, 1; | division by zero

# All that meet at a barrier name the same count.
-- launch 1 128 0
-- kernel
shr.u32 %r2, %r1, 5;
and.b32 %r2, %r2, 1;
mad.lo.u32 %r3, %r2, 0, 128;
bar.sync 1, %r3;
st.global.u32 [%rd2], 1;
-- out 1
-- mutate barrier-mismatch | %r2, 0, 128; | %r2, 32, 96; | threads here
