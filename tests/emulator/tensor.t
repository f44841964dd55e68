# A box in and a box out, both reaching over edges of their tensors, the near one and the far ones: zeros come in,
# nothing goes out.
-- launch 1 32 2048
-- target sm_90a
-- map a in i32 dims=32,8 strides=128 box=8,4
-- map b out i32 dims=8,5 strides=32 box=8,4
-- kernel
mov.u32 %r3, smem;
setp.eq.u32 %p1, %r1, 0;
@%p1 mbarrier.init.shared::cta.b64 [%r3+1024], 1;
@%p1 fence.mbarrier_init.release.cluster;
mov.b64 %rd3, a;
cvta.param.u64 %rd3, %rd3;
mov.b64 %rd4, b;
cvta.param.u64 %rd4, %rd4;
mov.u32 %r5, -4;
mov.u32 %r6, 6;
@!%p1 bra wait;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3+1024], 128;
cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%rd3, {%r5, %r6}];
cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r3], [%rd3, {%r5, %r6}], [%r3+1024];
wait:
mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r3+1024], 0;
@!%p2 bra wait;
shl.b32 %r7, %r1, 2;
add.u32 %r7, %r3, %r7;
ld.shared.u32 %r8, [%r7];
add.u32 %r8, %r8, 1;
st.shared.u32 [%r7], %r8;
fence.proxy.async.shared::cta;
bar.warp.sync -1;
@!%p1 bra done;
st.global.v4.u32 [%rd2+128], {1, 2, 3, 4};
cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd4, {0, 0}], [%r3];
cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%rd4, {4, 4}], [%r3];
cp.async.bulk.commit_group;
cp.async.bulk.wait_group 0;
done:
-- out 1 1 1 1 193 194 195 196 1 1 1 1 225 226 227 228 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 2 3 4 1 1 1 1
-- mutate in-flight | @!%p2 bra wait; | 
-- mutate proxy | fence.proxy.async.shared::cta;\n | 
-- mutate in-flight | cp.async.bulk.wait_group 0; | 
-- mutate misaligned | bytes [%r3], | bytes [%r3+64], | a bulk copy at shared offset 64, which is not a multiple of 128
-- mutate box | mov.u32 %r5, -4; | mov.u32 %r5, -2; | coordinate 0 is -2, of elements of 4 bytes, and the dimension has 32: a box must begin
-- mutate box | [%rd4, {4, 4}] | [%rd4, {3, 4}] | coordinate 0 is 3, of elements of 4 bytes, and the dimension has 8: a box must begin
-- mutate box | [%rd4, {4, 4}] | [%rd4, {-4, 4}] | coordinate 0 is -4, of elements of 4 bytes, and the dimension has 8: what is written must begin
-- mutate box | [%rd4, {0, 0}] | [%rd4, {0, -2}] | coordinate 1 is -2, of elements of 4 bytes, and the dimension has 5: what is written must begin
-- mutate tensor-map | mov.b64 %rd3, a;\ncvta.param.u64 %rd3, %rd3; | mov.b64 %rd3, %rd1; | not what cuTensorMapEncodeTiled has made
-- mutate misaligned | mov.b64 %rd3, a;\ncvta.param.u64 %rd3, %rd3; | mov.b64 %rd3, a;\nadd.u64 %rd3, %rd3, 16;\ncvta.param.u64 %rd3, %rd3; | which is not a multiple of 64
-- mutate out-of-bounds | mov.b64 %rd3, a;\ncvta.param.u64 %rd3, %rd3; | mov.b64 %rd3, smem;\ncvta.shared.u64 %rd3, %rd3; | in shared memory
-- mutate tensor-map | cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r3], [%rd3, {%r5, %r6}] | cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r3], [%rd3, {%r5, %r6, 0}] | is of rank 2

# A tensor that its memory does not hold.
-- launch 1 32 2048
-- target sm_90a
-- map a in i32 dims=32,33 strides=128 box=8,4
-- kernel
mov.u32 %r3, smem;
setp.eq.u32 %p1, %r1, 0;
@%p1 mbarrier.init.shared::cta.b64 [%r3+1024], 1;
@%p1 fence.mbarrier_init.release.cluster;
mov.b64 %rd3, a;
cvta.param.u64 %rd3, %rd3;
mov.u32 %r6, 28;
@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3+1024], 128;
@%p1 cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [%r3], [%rd3, {8, %r6}], [%r3+1024];
wait:
mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r3+1024], 0;
@!%p2 bra wait;
ld.shared.v2.u32 {%r7, %r8}, [%r3+96];
st.global.v2.u32 [%rd2], {%r7, %r8};
-- out 1000 1001
-- mutate out-of-bounds | mov.u32 %r6, 28; | mov.u32 %r6, 29; | of the allocation

-- launch 1 32 0
-- target sm_90a
-- kernel
cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [%r3], [%rd3, {8}], [%r3+1024];
-- refused operands do not fit

-- launch 1 32 0
-- kernel
cp.async.bulk.wait_group 0;
-- refused needs .target sm_90

# Additions: integers by a map, floats without one. They end at wait_group, in any order.
-- launch 1 32 2048
-- target sm_90a
-- map a in i32 dims=16,4 strides=64 box=8,4
-- kernel
mov.u32 %r3, smem;
setp.eq.u32 %p1, %r1, 0;
mov.b64 %rd3, a;
cvta.param.u64 %rd3, %rd3;
shl.b32 %r7, %r1, 2;
add.u32 %r7, %r3, %r7;
st.shared.u32 [%r7], 1;
st.shared.f32 [%r7+128], 0f3FC00000;
fence.proxy.async;
bar.warp.sync -1;
@%p1 cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%rd3, {4, 2}], [%r3];
@%p1 cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%rd3, {4, 2}], [%r3];
@%p1 cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%rd1+512], [%r3+128], 128;
@%p1 cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%rd1+512], [%r3+128], 128;
@%p1 cp.async.bulk.commit_group;
@%p1 cp.async.bulk.wait_group 0;
bar.warp.sync -1;
mul.wide.u32 %rd4, %r1, 4;
add.u64 %rd5, %rd1, %rd4;
ld.global.u32 %r8, [%rd5+128];
ld.global.u32 %r9, [%rd5+512];
add.u64 %rd5, %rd2, %rd4;
st.global.u32 [%rd5], %r8;
st.global.u32 [%rd5+128], %r9;
-- out 32 33 34 35 38 39 40 41 42 43 44 45 44 45 46 47 48 49 50 51 54 55 56 57 58 59 60 61 60 61 62 63 0x40400000 0x40400000 0x40400000 0x40400000
-- mutate in-flight | @%p1 cp.async.bulk.wait_group 0;\n |  | may still read there
-- mutate proxy | fence.proxy.async;\n | 
-- mutate unwritten-read | [%rd1+512], [%r3+128] | [%rd2+512], [%r3+128] | not all of which were ever written

# Rows that end within 16 bytes: an H200 stores these 16 whole, past the end. Loads and what stays inside are right.
-- launch 1 32 2048
-- target sm_90a
-- map a in i32 dims=30 box=8
-- map b out i32 dims=30 box=8
-- kernel
mov.u32 %r3, smem;
setp.eq.u32 %p1, %r1, 0;
setp.lt.u32 %p3, %r1, 8;
@%p1 mbarrier.init.shared::cta.b64 [%r3+1024], 1;
@%p1 fence.mbarrier_init.release.cluster;
mov.b64 %rd3, a;
cvta.param.u64 %rd3, %rd3;
mov.b64 %rd4, b;
cvta.param.u64 %rd4, %rd4;
@!%p1 bra wait;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3+1024], 32;
cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r3], [%rd3, {24}], [%r3+1024];
wait:
mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r3+1024], 0;
@!%p2 bra wait;
@%p1 cp.async.bulk.tensor.1d.global.shared::cta.tile.bulk_group [%rd4, {20}], [%r3];
@%p1 cp.async.bulk.tensor.1d.global.shared::cta.tile.bulk_group [%rd4, {32}], [%r3];
@%p1 cp.async.bulk.commit_group;
@%p1 cp.async.bulk.wait_group 0;
bar.warp.sync -1;
@%p1 ld.global.v4.u32 {%r4, %r5, %r6, %r7}, [%rd2+80];
@%p1 ld.global.v4.u32 {%r8, %r9, %r10, %r11}, [%rd2+96];
@%p1 st.global.v4.u32 [%rd2], {%r4, %r5, %r6, %r7};
@%p1 st.global.v4.u32 [%rd2+16], {%r8, %r9, %r10, %r11};
-- out 24 25 26 27 28 29 0 0
-- mutate box | [%rd4, {20}] | [%rd4, {24}] | coordinate 0 is 24, of elements of 4 bytes, and the dimension has 30: what is written over the end of a row
-- mutate box | cp.async.bulk.tensor.1d.global.shared::cta.tile.bulk_group [%rd4, {20}] | cp.reduce.async.bulk.tensor.1d.global.shared::cta.add.tile.bulk_group [%rd4, {24}] | what is written over the end of a row

# Elements of any size begin at whole 16 bytes; not all can be added.
-- launch 1 32 2048
-- target sm_90a
-- map a in i64 dims=16,4 strides=128 box=8,4
-- map b in bf16 dims=64,4 strides=128 box=8,4
-- map c in u8 dims=64,4 strides=64 box=16,4
-- kernel
mov.b64 %rd3, a;
cvta.param.u64 %rd3, %rd3;
mov.b64 %rd4, b;
cvta.param.u64 %rd4, %rd4;
mov.b64 %rd5, c;
cvta.param.u64 %rd5, %rd5;
st.global.u32 [%rd2], 1;
-- out 1
-- mutate box | st.global.u32 [%rd2], 1; | cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%rd3, {4, 2}], [smem]; | elements are s64
-- mutate box | st.global.u32 [%rd2], 1; | cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%rd5, {16, 2}], [smem]; | elements are u8
-- mutate box | st.global.u32 [%rd2], 1; | cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%rd4, {4, 2}], [smem]; | coordinate 0 is 4, of elements of 2 bytes
-- mutate box | st.global.u32 [%rd2], 1; | cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%rd4, {8, -1}], [smem]; | coordinate 1 is -1, of elements of 2 bytes
-- mutate box | st.global.u32 [%rd2], 1; | cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%rd3, {1, 2}], [smem]; | coordinate 0 is 1, of elements of 8 bytes
-- mutate box | st.global.u32 [%rd2], 1; | cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [smem], [%rd5, {8, 0}], [smem+1024]; | coordinate 0 is 8, of elements of 1 bytes
