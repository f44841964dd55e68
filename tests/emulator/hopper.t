# A grid without clusters is one of clusters of one CTA.
-- launch 3 32 64
-- target sm_90a
-- kernel
griddepcontrol.wait;
griddepcontrol.launch_dependents;
mov.u32 %r2, %clusterid.x;
mov.u32 %r3, %nclusterid.x;
mov.u32 %r4, %cluster_ctarank;
mov.u32 %r5, %cluster_nctarank;
mov.u32 %r6, %cluster_ctaid.y;
mov.u32 %r7, %cluster_nctaid.z;
mov.u64 %rd5, %globaltimer;
mov.u32 %r8, 0;
mov.u32 %r9, smem;
mapa.shared::cluster.u32 %r9, %r9, %r8;
setp.eq.u32 %p1, %r1, 0;
@%p1 st.shared::cluster.u32 [%r9], 7;
fence.acq_rel.cluster;
bar.warp.sync -1;
mov.u32 %r10, smem;
ld.shared.u32 %r10, [%r10];
mul.wide.u32 %rd3, %r2, 32;
add.u64 %rd3, %rd2, %rd3;
@%p1 st.global.v4.u32 [%rd3], {%r2, %r3, %r4, %r5};
@%p1 st.global.v4.u32 [%rd3+16], {%r6, %r7, %r10, %r8};
-- out 0 3 0 1 0 1 7 0 1 3 0 1 0 1 7 0 2 3 0 1 0 1 7 0
-- mutate out-of-bounds | mov.u32 %r8, 0; | mov.u32 %r8, 1; | CTA 1 of the cluster, which has 1

# What begins before the grid ahead has ended must wait for it before it touches memory: stores, and bulk copies too.
-- launch 1 32 64
-- target sm_90a
-- overlap
-- kernel
griddepcontrol.launch_dependents;
griddepcontrol.wait;
mov.u32 %r2, 7;
setp.eq.u32 %p1, %r1, 0;
@%p1 st.global.u32 [%rd2], %r2;
-- out 7
-- mutate overlap | griddepcontrol.wait; | mov.u32 %r3, 0; | before griddepcontrol.wait

-- launch 1 32 64
-- target sm_90a
-- overlap
-- kernel
griddepcontrol.wait;
setp.eq.u32 %p1, %r1, 0;
mov.u32 %r2, smem;
@%p1 st.shared.v4.u32 [%r2], {%r1, %r1, %r1, %r1};
fence.proxy.async;
@%p1 cp.async.bulk.global.shared::cta.bulk_group [%rd2], [%r2], 16;
@%p1 cp.async.bulk.commit_group;
@%p1 cp.async.bulk.wait_group 0;
-- out 0 0 0 0
-- mutate overlap | griddepcontrol.wait; | mov.u32 %r3, 0; | before griddepcontrol.wait

# One lane is elected. All warps of a warpgroup must change their register count together.
-- launch 1 256 64
-- target sm_90a
-- kernel
shr.u32 %r2, %r1, 7;
setp.eq.u32 %p1, %r2, 0;
@!%p1 bra second;
setmaxnreg.inc.sync.aligned.u32 160;
bra both;
second:
setmaxnreg.dec.sync.aligned.u32 40;
both:
elect.sync %r3|%p2, -1;
mul.wide.u32 %rd3, %r1, 4;
add.u64 %rd3, %rd2, %rd3;
selp.b32 %r4, 100, %r3, %p2;
st.global.u32 [%rd3], %r4;
-- out 100 0 0
-- mutate wgmma | 160; | 156; | 24, 32 .. 256 are possible
-- mutate wgmma | dec.sync.aligned.u32 40; | dec.sync.aligned.u32 16;
-- mutate wgmma | setp.eq.u32 %p1, %r2, 0; | setp.lt.u32 %p1, %r1, 96; | another warp of the warpgroup executes something else in its place
-- mutate wgmma | setp.eq.u32 %p1, %r2, 0; | setp.lt.u32 %p1, %r1, 32;
-- mutate wgmma | second: | second:\nsetp.ge.u32 %p3, %r1, 224;\n@%p3 bra both; | the warp has ended and has not executed this
-- mutate divergent | setp.eq.u32 %p1, %r2, 0; | setp.lt.u32 %p1, %r1, 16; | all 32 must execute it together

# Registers really change hands: ptxas counts 168 a thread at entry, 384 x 168 = 128 x 24 + 256 x 240. The consumers use
# what they get, and the producer goes on with what it kept.
-- launch 1 384 64
-- target sm_90a
-- directives .maxntid 384, 1, 1 .minnctapersm 1
-- kernel
mov.u32 %r3, smem;
setp.ge.u32 %p1, %r1, 256;
setp.eq.u32 %p2, %r1, 256;
@%p1 bra producer;
setmaxnreg.inc.sync.aligned.u32 240;
bar.sync 1, 384;
ld.shared.u32 %r4, [%r3];
mad.lo.u32 %r4, %r4, %r1, 1;
bra both;
producer:
setmaxnreg.dec.sync.aligned.u32 24;
@%p2 st.shared.u32 [%r3], 3;
bar.sync 1, 384;
mov.u32 %r4, 7;
both:
shr.u32 %r5, %r1, 6;
and.b32 %r6, %r1, 63;
setp.eq.u32 %p3, %r6, 63;
mul.wide.u32 %rd3, %r5, 4;
add.u64 %rd3, %rd2, %rd3;
@%p3 st.global.u32 [%rd3], %r4;
-- out 190 382 574 766 7 7

# The larger and the smaller of two, or of zero.
-- launch 1 1 0
-- target sm_90
-- kernel
mov.u32 %r2, -7;
mov.u32 %r3, 5;
mov.u32 %r4, 9;
max.relu.s32 %r5, %r2, %r3;
max.relu.s32 %r6, %r2, -3;
min.relu.s32 %r7, %r3, %r4;
min.relu.s32 %r8, %r2, %r4;
st.global.v4.u32 [%rd2], {%r5, %r6, %r7, %r8};
-- out 5 0 5 0

-- launch 1 64 64
-- target sm_90a
-- kernel
nanosleep.u32 1;
-- out
-- mutate wgmma | nanosleep.u32 1; | setmaxnreg.inc.sync.aligned.u32 160; | a warpgroup is four warps

-- launch 1 32 0
-- target sm_90
-- kernel
setmaxnreg.inc.sync.aligned.u32 160;
-- refused needs .target sm_90a

-- launch 1 32 0
-- kernel
stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r1], {%r2};
-- refused needs .target sm_90
