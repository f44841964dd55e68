# The whole of each space, and not a byte more. in and out have 4096 bytes.
-- launch 1 32 128
-- kernel
.local .align 8 .b8 stack[16];
mov.u32 %r3, smem;
setp.ne.u32 %p1, %r1, %r1;
shl.b32 %r2, %r1, 2;
add.u32 %r4, %r3, %r2;
st.shared.u32 [%r4], %r1;
mul.wide.u32 %rd3, %r1, 4;
add.u64 %rd4, %rd1, %rd3;
add.u64 %rd5, %rd2, %rd3;
ld.global.u32 %r5, [%rd4+3968];
mov.u64 %rd6, stack;
st.local.u32 [%rd6+12], %r5;
cvta.local.u64 %rd7, %rd6;
ld.u32 %r6, [%rd7+12];
cvt.u64.u32 %rd8, %r4;
cvta.shared.u64 %rd9, %rd8;
ld.u32 %r7, [%rd9];
cvta.to.global.u64 %rd10, %rd4;
ld.global.u32 %r8, [%rd10];
add.u32 %r6, %r6, %r7;
add.u32 %r6, %r6, %r8;
st.global.u32 [%rd5], %r6;
-- out 992 995 998
-- mutate out-of-bounds | [%rd4+3968] | [%rd4+3972] | offset 4096 of the allocation
-- mutate out-of-bounds | [%rd4+3968] | [%rd3+3968] | no device memory
-- mutate out-of-bounds | [%rd4+3968] | [%rd4-4] | no device memory
-- mutate out-of-bounds | st.shared.u32 [%r4] | st.shared.u32 [%r4+4] | the CTA has 128 bytes
-- mutate out-of-bounds | st.shared.u32 [%r4] | st.shared.u32 [%r2] | shared offset
-- mutate out-of-bounds | [%rd6+12] | [%rd6+16] | the thread has 16 bytes
-- mutate misaligned | [%rd4+3968] | [%rd4+3966] | not a multiple of 4
-- mutate misaligned | st.shared.u32 [%r4] | st.shared.u32 [%r4+2]
-- mutate misaligned | ld.global.u32 %r8, [%rd10] | ld.global.v4.u32 {%r8, %r10, %r11, %r12}, [%rd10] | not a multiple of 16
-- mutate unwritten-read | ld.global.u32 %r5, [%rd4 | ld.global.u32 %r5, [%rd5 | ever written
-- mutate unwritten-read | st.shared.u32 [%r4] | st.shared.u32 [%r3], 0;\n@%p1 st.shared.u32 [%r3] | nothing has written
-- mutate unwritten-read | [%rd7+12] | [%rd7+8] | local byte
