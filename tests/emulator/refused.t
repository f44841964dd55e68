# What is not known is refused with its line and text.
-- launch 1 32 0
-- kernel
add.u32 %r2, %r2, 1;
wgmma.fence.sync.aligned;
-- refused line 13: wgmma.fence.sync.aligned;

-- launch 1 32 0
-- kernel
barrier.cluster.arrive;
-- refused needs .target sm_90

-- launch 1 32 0
-- kernel
call.uni (_), vprintf, (%rd1);
-- refused functions are not supported

-- launch 1 32 0
-- kernel
add.u32 %r2, %rd2, 1;
-- refused operands do not fit

-- launch 1 32 0
-- kernel
add.rq.f32 %f2, %f2, %f2;
-- refused not supported

-- launch 1 32 0
-- kernel
bra nowhere;
-- refused no label 'nowhere'

-- launch 1 32 0
-- kernel
add.u32 %r2, %x9, 1;
-- refused '%x9' is not declared

-- launch 1 32 0
-- kernel
add.u32 %r2, %r3, 1
-- refused expected ';'

-- launch 1 32 0
-- kernel
tex.1d.v4.s32.s32 {%r1,%r2,%r3,%r4}, [%r5, {%r6}];
-- refused line
-- launch 1 32 0
-- kernel
.shared .align 4 .u32 counter = 7;
-- refused only variables in global and constant memory can have initial values

-- launch 1 32 0
-- kernel
.local .align 4 .u32 counter = 7;
-- refused only variables in global and constant memory can have initial values

