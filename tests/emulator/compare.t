# setp and its complement
-- insn setp.eq.s32 r|q, a, b;
-- regs a:b32 b:b32 -> r:pred q:pred
a=0xb10c9d55 b=0x2 r=0 q=1
a=0x2eb0beec b=0x80000000 r=0 q=1
a=0x55 b=0x7fffffff r=0 q=1
a=0x3545d937 b=0x3 r=0 q=1
a=0x80000001 b=0xf51a06ff r=0 q=1
a=0xffffffff b=0x80000001 r=0 q=1
a=0x55 b=0x0 r=0 q=1
a=0x0 b=0x3 r=0 q=1
a=0xb10c9d55 b=0x87ce1e02 r=0 q=1
a=0x7fffffff b=0xf51a06ff r=0 q=1
a=0x80000000 b=0x0 r=0 q=1
a=0x3 b=0xed93c045 r=0 q=1
a=0x5 b=0x5 r=1 q=0

# setp and its complement
-- insn setp.eq.u32 r|q, a, b;
-- regs a:b32 b:b32 -> r:pred q:pred
a=0x7fffffff b=0x55 r=0 q=1
a=0x2 b=0x1 r=0 q=1
a=0x4aed35f5 b=0x0 r=0 q=1
a=0x196265e6 b=0xf30b9c45 r=0 q=1
a=0x55 b=0x1 r=0 q=1
a=0x7fffffff b=0xffffffff r=0 q=1
a=0x425b411e b=0x2 r=0 q=1
a=0x80000001 b=0x80000000 r=0 q=1
a=0x3 b=0xffffffff r=0 q=1
a=0x55 b=0x3 r=0 q=1
a=0x1 b=0x0 r=0 q=1
a=0x80000001 b=0x80000001 r=1 q=0
a=0x5 b=0x5 r=1 q=0

# setp and its complement
-- insn setp.eq.s64 r|q, a, b;
-- regs a:b64 b:b64 -> r:pred q:pred
a=0x0 b=0xffffffffffffffff r=0 q=1
a=0x4a08b9dfb90f59ec b=0x7fffffffffffffff r=0 q=1
a=0x1 b=0x8000000000000000 r=0 q=1
a=0x7c4d7870e4ac91 b=0xe0475784ff6e1623 r=0 q=1
a=0x2 b=0x0 r=0 q=1
a=0x8000000000000000 b=0xb54991243067e59a r=0 q=1
a=0x7c4d7870e4ac91 b=0x3 r=0 q=1
a=0x1 b=0x3 r=0 q=1
a=0x3 b=0x1 r=0 q=1
a=0x0 b=0x8e3197713e1bd7c0 r=0 q=1
a=0xafaf53b5cc87bbca b=0xffffffffffffffff r=0 q=1
a=0x8000000000000000 b=0xad39791e966d02fe r=0 q=1
a=0x5 b=0x5 r=1 q=0

# setp and its complement
-- insn setp.eq.u16 r|q, a, b;
-- regs a:b16 b:b16 -> r:pred q:pred
a=0x1 b=0x4413 r=0 q=1
a=0x0 b=0x4413 r=0 q=1
a=0x2b82 b=0xd9ca r=0 q=1
a=0xf138 b=0xd9ca r=0 q=1
a=0xffff b=0x3 r=0 q=1
a=0x129 b=0x2 r=0 q=1
a=0xda5a b=0x1 r=0 q=1
a=0x2 b=0x8001 r=0 q=1
a=0x1 b=0x8001 r=0 q=1
a=0xf138 b=0x7fff r=0 q=1
a=0x8000 b=0x2 r=0 q=1
a=0x1 b=0x7fff r=0 q=1
a=0x5 b=0x5 r=1 q=0

# setp and its complement
-- insn setp.eq.s16 r|q, a, b;
-- regs a:b16 b:b16 -> r:pred q:pred
a=0x1b05 b=0x1 r=0 q=1
a=0x1b05 b=0x8001 r=0 q=1
a=0x0 b=0x789d r=0 q=1
a=0x2 b=0x55 r=0 q=1
a=0x1 b=0x7fff r=0 q=1
a=0xffff b=0x3 r=0 q=1
a=0x8001 b=0x7fff r=0 q=1
a=0xffff b=0x8000 r=0 q=1
a=0x1 b=0x3 r=0 q=1
a=0x55 b=0xffff r=0 q=1
a=0x3 b=0x1 r=0 q=1
a=0xa213 b=0x1 r=0 q=1
a=0x5 b=0x5 r=1 q=0

# setp and its complement
-- insn setp.ne.s32 r|q, a, b;
-- regs a:b32 b:b32 -> r:pred q:pred
a=0x80000000 b=0x80000000 r=0 q=1
a=0x2 b=0x7fffffff r=1 q=0
a=0x1a693baf b=0x647462e r=1 q=0
a=0x80000001 b=0x3 r=1 q=0
a=0xffffffff b=0x2 r=1 q=0
a=0x80000000 b=0xb9c63ae r=1 q=0
a=0xab18c469 b=0x2 r=1 q=0
a=0x434d1a54 b=0x55 r=1 q=0
a=0x3 b=0x3 r=0 q=1
a=0x1 b=0x512cf7fb r=1 q=0
a=0xaede12bc b=0x0 r=1 q=0
a=0x80000001 b=0x7fffffff r=1 q=0
a=0x5 b=0x5 r=0 q=1

# setp and its complement
-- insn setp.ne.u32 r|q, a, b;
-- regs a:b32 b:b32 -> r:pred q:pred
a=0x55 b=0x3 r=1 q=0
a=0x0 b=0x0 r=0 q=1
a=0x80000000 b=0x1096d837 r=1 q=0
a=0x80000001 b=0x1096d837 r=1 q=0
a=0x1 b=0x6960f5c4 r=1 q=0
a=0x0 b=0xcb8bf5fc r=1 q=0
a=0x3 b=0xded37902 r=1 q=0
a=0x1 b=0xded37902 r=1 q=0
a=0x3 b=0x6960f5c4 r=1 q=0
a=0xde493425 b=0x1096d837 r=1 q=0
a=0x55 b=0x1 r=1 q=0
a=0x3ce6e35 b=0xded37902 r=1 q=0
a=0x5 b=0x5 r=0 q=1

# setp and its complement
-- insn setp.ne.s64 r|q, a, b;
-- regs a:b64 b:b64 -> r:pred q:pred
a=0x60da3a2b9481722b b=0x6e5183ce427820fc r=1 q=0
a=0x46649c7e9eb75eee b=0x23f53d1fb61198ad r=1 q=0
a=0x8000000000000000 b=0x0 r=1 q=0
a=0xad31f2de59386938 b=0x6e5183ce427820fc r=1 q=0
a=0x55 b=0x8000000000000001 r=1 q=0
a=0x3 b=0x1 r=1 q=0
a=0x0 b=0x6e5183ce427820fc r=1 q=0
a=0xffffffffffffffff b=0xffffffffffffffff r=0 q=1
a=0x8000000000000001 b=0xa67d543a09140e21 r=1 q=0
a=0x55 b=0x6e5183ce427820fc r=1 q=0
a=0x8000000000000001 b=0x23f53d1fb61198ad r=1 q=0
a=0x2 b=0x6e5183ce427820fc r=1 q=0
a=0x5 b=0x5 r=0 q=1

# setp and its complement
-- insn setp.ne.u16 r|q, a, b;
-- regs a:b16 b:b16 -> r:pred q:pred
a=0xffff b=0xece0 r=1 q=0
a=0x3 b=0x3 r=0 q=1
a=0x1 b=0x8000 r=1 q=0
a=0x0 b=0x8001 r=1 q=0
a=0x3 b=0xdca r=1 q=0
a=0x3 b=0x55 r=1 q=0
a=0x0 b=0xece0 r=1 q=0
a=0xf89 b=0x3 r=1 q=0
a=0x55 b=0xdca r=1 q=0
a=0xd219 b=0x8001 r=1 q=0
a=0x8001 b=0x3 r=1 q=0
a=0x372c b=0x3 r=1 q=0
a=0x5 b=0x5 r=0 q=1

# setp and its complement
-- insn setp.ne.s16 r|q, a, b;
-- regs a:b16 b:b16 -> r:pred q:pred
a=0x7fff b=0x8000 r=1 q=0
a=0x44b b=0xd607 r=1 q=0
a=0x0 b=0xffff r=1 q=0
a=0x1 b=0xabb3 r=1 q=0
a=0x317d b=0x1 r=1 q=0
a=0x1 b=0x8000 r=1 q=0
a=0x2 b=0x6dc r=1 q=0
a=0x317d b=0x8000 r=1 q=0
a=0x55 b=0x8000 r=1 q=0
a=0x3 b=0x3 r=0 q=1
a=0x127c b=0x8000 r=1 q=0
a=0xc70e b=0x8000 r=1 q=0
a=0x5 b=0x5 r=0 q=1

# setp and its complement
-- insn setp.lt.s32 r|q, a, b;
-- regs a:b32 b:b32 -> r:pred q:pred
a=0x80000000 b=0x2 r=1 q=0
a=0xbd553ab5 b=0x1 r=1 q=0
a=0x3 b=0x80000001 r=0 q=1
a=0xf30666de b=0xb0e7254f r=0 q=1
a=0x80000000 b=0xb0e7254f r=1 q=0
a=0xffffffff b=0x986ad87c r=0 q=1
a=0xf30666de b=0xfbae75f9 r=1 q=0
a=0x55 b=0x3 r=0 q=1
a=0xbd553ab5 b=0x0 r=1 q=0
a=0xffffffff b=0x3 r=1 q=0
a=0xf3e5139 b=0xb0e7254f r=0 q=1
a=0x1 b=0x55 r=1 q=0
a=0x5 b=0x5 r=0 q=1

# setp and its complement
-- insn setp.lt.u32 r|q, a, b;
-- regs a:b32 b:b32 -> r:pred q:pred
a=0x6c794d10 b=0xb28505e7 r=1 q=0
a=0x6c794d10 b=0x55 r=0 q=1
a=0x7fffffff b=0x0 r=0 q=1
a=0xdc618d5e b=0x718c7195 r=0 q=1
a=0x80000001 b=0x1 r=0 q=1
a=0x80000000 b=0xffffffff r=1 q=0
a=0x55 b=0xc8d70a79 r=1 q=0
a=0x2 b=0x55 r=1 q=0
a=0x3 b=0x3 r=0 q=1
a=0x7fffffff b=0xc28c8ad7 r=1 q=0
a=0xffffffff b=0xffffffff r=0 q=1
a=0x7fffffff b=0x3 r=0 q=1
a=0x5 b=0x5 r=0 q=1

# setp and its complement
-- insn setp.lt.s64 r|q, a, b;
-- regs a:b64 b:b64 -> r:pred q:pred
a=0x1 b=0x0 r=0 q=1
a=0x8000000000000000 b=0x6d6e59fa6d1b4500 r=1 q=0
a=0x7fffffffffffffff b=0xaa37d40baaf22e9c r=0 q=1
a=0xffffffffffffffff b=0x55 r=1 q=0
a=0xffffffffffffffff b=0x56faaeab3520565f r=1 q=0
a=0x55 b=0x8000000000000000 r=0 q=1
a=0xffffffffffffffff b=0x3 r=1 q=0
a=0x58ecd706aef56864 b=0x7e56f2864a604ee2 r=1 q=0
a=0x89e80cf7753e730b b=0xffffffffffffffff r=1 q=0
a=0x2 b=0x3 r=1 q=0
a=0x0 b=0xffffffffffffffff r=0 q=1
a=0x89e80cf7753e730b b=0x0 r=1 q=0
a=0x5 b=0x5 r=0 q=1

# setp and its complement
-- insn setp.lt.u16 r|q, a, b;
-- regs a:b16 b:b16 -> r:pred q:pred
a=0x7fff b=0x3 r=0 q=1
a=0x8001 b=0x3 r=0 q=1
a=0x4d81 b=0x2 r=0 q=1
a=0x55 b=0x1391 r=1 q=0
a=0x7fff b=0xd3f0 r=1 q=0
a=0x4d81 b=0x1391 r=0 q=1
a=0xfae7 b=0x0 r=0 q=1
a=0x0 b=0x8001 r=1 q=0
a=0x3 b=0xd7b2 r=1 q=0
a=0x2 b=0x8000 r=1 q=0
a=0xffff b=0x7fff r=0 q=1
a=0x3 b=0x1 r=0 q=1
a=0x5 b=0x5 r=0 q=1

# setp and its complement
-- insn setp.lt.s16 r|q, a, b;
-- regs a:b16 b:b16 -> r:pred q:pred
a=0x55 b=0x7110 r=1 q=0
a=0x94 b=0x8001 r=0 q=1
a=0x3 b=0x1 r=0 q=1
a=0x8000 b=0xf6e1 r=1 q=0
a=0x55 b=0xa0c1 r=0 q=1
a=0x3 b=0x7fff r=1 q=0
a=0xf5cd b=0xffff r=1 q=0
a=0x8000 b=0x55 r=1 q=0
a=0xffff b=0x7fff r=1 q=0
a=0xf5cd b=0x55 r=1 q=0
a=0x2 b=0x8000 r=0 q=1
a=0x46f2 b=0x8000 r=0 q=1
a=0x5 b=0x5 r=0 q=1

# setp and its complement
-- insn setp.le.s32 r|q, a, b;
-- regs a:b32 b:b32 -> r:pred q:pred
a=0x174e12d8 b=0x156aadd7 r=0 q=1
a=0x35c119e6 b=0x15ce9f0d r=0 q=1
a=0x174e12d8 b=0x3 r=0 q=1
a=0x934e63ba b=0x156aadd7 r=1 q=0
a=0x7fffffff b=0x80000001 r=0 q=1
a=0x7fffffff b=0xa57e1fb1 r=0 q=1
a=0x80000001 b=0xc4a4925f r=1 q=0
a=0xffffffff b=0x70119424 r=1 q=0
a=0x0 b=0x80000001 r=0 q=1
a=0x80000000 b=0x0 r=1 q=0
a=0x80000000 b=0x15ce9f0d r=1 q=0
a=0x80000001 b=0x15ce9f0d r=1 q=0
a=0x5 b=0x5 r=1 q=0

# setp and its complement
-- insn setp.le.u32 r|q, a, b;
-- regs a:b32 b:b32 -> r:pred q:pred
a=0x1 b=0x55 r=1 q=0
a=0x8a3d6655 b=0x80000000 r=0 q=1
a=0x7fffffff b=0x583a639d r=0 q=1
a=0x5e0fc191 b=0xffffffff r=1 q=0
a=0x55 b=0x2 r=0 q=1
a=0x2 b=0x0 r=0 q=1
a=0x7fffffff b=0x3 r=0 q=1
a=0x8a3d6655 b=0x0 r=0 q=1
a=0x55 b=0xce87d540 r=1 q=0
a=0x2 b=0x4a13f01 r=1 q=0
a=0x5e0fc191 b=0x2 r=0 q=1
a=0x80000001 b=0x583a639d r=0 q=1
a=0x5 b=0x5 r=1 q=0

# setp and its complement
-- insn setp.le.s64 r|q, a, b;
-- regs a:b64 b:b64 -> r:pred q:pred
a=0x0 b=0x7fffffffffffffff r=1 q=0
a=0x8000000000000000 b=0x8000000000000000 r=1 q=0
a=0x8000000000000001 b=0x1 r=1 q=0
a=0xde95d94507d317ee b=0x2 r=1 q=0
a=0x55 b=0x3 r=0 q=1
a=0x0 b=0x8000000000000000 r=0 q=1
a=0x8000000000000001 b=0xf683ff1986f7cef3 r=1 q=0
a=0xd9a8a63dcd8f2f3a b=0x8dcdb04967a728fe r=0 q=1
a=0x1 b=0x55 r=1 q=0
a=0x7fffffffffffffff b=0xf683ff1986f7cef3 r=0 q=1
a=0xd9a8a63dcd8f2f3a b=0x936411d14eb65185 r=0 q=1
a=0xd9a8a63dcd8f2f3a b=0x2 r=1 q=0
a=0x5 b=0x5 r=1 q=0

# setp and its complement
-- insn setp.le.u16 r|q, a, b;
-- regs a:b16 b:b16 -> r:pred q:pred
a=0x3 b=0x3 r=1 q=0
a=0x0 b=0x0 r=1 q=0
a=0x88ab b=0x2f8 r=0 q=1
a=0x55 b=0x0 r=0 q=1
a=0x8001 b=0xffff r=1 q=0
a=0x5234 b=0x55 r=0 q=1
a=0x55 b=0xfe66 r=1 q=0
a=0x3 b=0x239d r=1 q=0
a=0x1 b=0x0 r=0 q=1
a=0x8001 b=0x8000 r=0 q=1
a=0x7fff b=0x2f8 r=0 q=1
a=0x2 b=0x55 r=1 q=0
a=0x5 b=0x5 r=1 q=0

# setp and its complement
-- insn setp.le.s16 r|q, a, b;
-- regs a:b16 b:b16 -> r:pred q:pred
a=0xd82e b=0xa12f r=0 q=1
a=0x3 b=0x3 r=1 q=0
a=0x5efb b=0x5485 r=0 q=1
a=0x3 b=0x0 r=0 q=1
a=0xcaa9 b=0x3 r=1 q=0
a=0x3 b=0x32e4 r=1 q=0
a=0x8001 b=0xcc1d r=1 q=0
a=0x1 b=0x7fff r=1 q=0
a=0x7fff b=0x55 r=0 q=1
a=0x656d b=0xe388 r=0 q=1
a=0xcaa9 b=0x0 r=1 q=0
a=0x8000 b=0x1 r=1 q=0
a=0x5 b=0x5 r=1 q=0

# setp and its complement
-- insn setp.gt.s32 r|q, a, b;
-- regs a:b32 b:b32 -> r:pred q:pred
a=0x80000000 b=0x2 r=0 q=1
a=0x3bfef279 b=0xe7f37a8 r=1 q=0
a=0x7fffffff b=0x80000001 r=1 q=0
a=0x2 b=0x2 r=0 q=1
a=0x55 b=0x55 r=0 q=1
a=0x80000001 b=0x25fa5658 r=0 q=1
a=0x55 b=0x80000000 r=1 q=0
a=0x55 b=0xf63f629a r=1 q=0
a=0x9da73054 b=0x0 r=0 q=1
a=0x9da73054 b=0x3 r=0 q=1
a=0x1 b=0xffffffff r=1 q=0
a=0x55 b=0x25fa5658 r=0 q=1
a=0x5 b=0x5 r=0 q=1

# setp and its complement
-- insn setp.gt.u32 r|q, a, b;
-- regs a:b32 b:b32 -> r:pred q:pred
a=0x3 b=0x7fffffff r=0 q=1
a=0x80000000 b=0x3 r=1 q=0
a=0x1 b=0xaf71e22f r=0 q=1
a=0x80000001 b=0x55 r=1 q=0
a=0x0 b=0x2 r=0 q=1
a=0x1 b=0x0 r=1 q=0
a=0x80000001 b=0x1 r=1 q=0
a=0xad082de2 b=0x1 r=1 q=0
a=0x55 b=0x2 r=1 q=0
a=0x1 b=0xffffffff r=0 q=1
a=0x1 b=0x1 r=0 q=1
a=0xdca036d8 b=0x3 r=1 q=0
a=0x5 b=0x5 r=0 q=1

# setp and its complement
-- insn setp.gt.s64 r|q, a, b;
-- regs a:b64 b:b64 -> r:pred q:pred
a=0x8000000000000000 b=0x5e501927c7934cd5 r=0 q=1
a=0x3 b=0x27cd10c4b11b7dbf r=0 q=1
a=0x55 b=0xac565e5e3c60b3b8 r=1 q=0
a=0x7fffffffffffffff b=0x8000000000000001 r=1 q=0
a=0xb96ccc8edb0f5d7a b=0x0 r=0 q=1
a=0xe628832ee5cb02f8 b=0x0 r=0 q=1
a=0xe628832ee5cb02f8 b=0xf7447a690f59a7de r=0 q=1
a=0x8000000000000000 b=0x2f04f78a2c615bc5 r=0 q=1
a=0xd0ac5641593f3f24 b=0x8000000000000000 r=1 q=0
a=0x45bf69f7680c7ee3 b=0x8000000000000000 r=1 q=0
a=0xb96ccc8edb0f5d7a b=0xac565e5e3c60b3b8 r=1 q=0
a=0x7fffffffffffffff b=0x2 r=1 q=0
a=0x5 b=0x5 r=0 q=1

# setp and its complement
-- insn setp.gt.u16 r|q, a, b;
-- regs a:b16 b:b16 -> r:pred q:pred
a=0xffff b=0x3 r=1 q=0
a=0x55 b=0x8000 r=0 q=1
a=0x7fff b=0xfb2c r=0 q=1
a=0xecc0 b=0x0 r=1 q=0
a=0x2758 b=0xffff r=0 q=1
a=0xecc0 b=0x55 r=1 q=0
a=0x0 b=0x6d30 r=0 q=1
a=0x7fff b=0x8001 r=0 q=1
a=0x8001 b=0xe75 r=1 q=0
a=0x2758 b=0xe75 r=1 q=0
a=0x2 b=0xe75 r=0 q=1
a=0x3 b=0x55 r=0 q=1
a=0x5 b=0x5 r=0 q=1

# setp and its complement
-- insn setp.gt.s16 r|q, a, b;
-- regs a:b16 b:b16 -> r:pred q:pred
a=0x8000 b=0x8000 r=0 q=1
a=0x85f b=0x82ec r=1 q=0
a=0x7fff b=0x2 r=1 q=0
a=0x3 b=0xed3e r=1 q=0
a=0x1 b=0x3 r=0 q=1
a=0x4fba b=0xffff r=1 q=0
a=0x85f b=0x0 r=1 q=0
a=0x8000 b=0xffff r=0 q=1
a=0x0 b=0x5a2b r=0 q=1
a=0xffff b=0xffff r=0 q=1
a=0x4fba b=0xa8d5 r=1 q=0
a=0x1 b=0x55 r=0 q=1
a=0x5 b=0x5 r=0 q=1

# setp and its complement
-- insn setp.ge.s32 r|q, a, b;
-- regs a:b32 b:b32 -> r:pred q:pred
a=0x8982042f b=0x458f8e64 r=0 q=1
a=0x6aabcf93 b=0x7fffffff r=0 q=1
a=0x6aabcf93 b=0x458f8e64 r=1 q=0
a=0x55 b=0x2 r=1 q=0
a=0xffffffff b=0x1 r=0 q=1
a=0x1 b=0x26c30abc r=0 q=1
a=0x58c3128a b=0x80000000 r=1 q=0
a=0x3 b=0x2 r=1 q=0
a=0x1ad03e2b b=0x55 r=1 q=0
a=0x58c3128a b=0xffffffff r=1 q=0
a=0x2 b=0xa34d2e5a r=1 q=0
a=0x7fffffff b=0x26c30abc r=1 q=0
a=0x5 b=0x5 r=1 q=0

# setp and its complement
-- insn setp.ge.u32 r|q, a, b;
-- regs a:b32 b:b32 -> r:pred q:pred
a=0xffffffff b=0x1 r=1 q=0
a=0x55 b=0x0 r=1 q=0
a=0x1 b=0x7fffffff r=0 q=1
a=0x9b9d2c51 b=0x80000001 r=1 q=0
a=0xd8b2132a b=0xace1bf68 r=1 q=0
a=0xffffffff b=0x2 r=1 q=0
a=0x55 b=0xb30555b2 r=0 q=1
a=0x0 b=0x55 r=0 q=1
a=0x7fffffff b=0x63c922e6 r=1 q=0
a=0x3 b=0x0 r=1 q=0
a=0x55 b=0x18a377fb r=0 q=1
a=0x80000000 b=0x0 r=1 q=0
a=0x5 b=0x5 r=1 q=0

# setp and its complement
-- insn setp.ge.s64 r|q, a, b;
-- regs a:b64 b:b64 -> r:pred q:pred
a=0x48f838d9fd021a61 b=0xffffffffffffffff r=1 q=0
a=0xffffffffffffffff b=0x8000000000000000 r=1 q=0
a=0x4e99846e6521a06b b=0x0 r=1 q=0
a=0x8000000000000001 b=0x8000000000000001 r=1 q=0
a=0x490444049ab1ebda b=0xf606d79d0d7d2613 r=1 q=0
a=0x48f838d9fd021a61 b=0x7fffffffffffffff r=0 q=1
a=0x3130a917633a06f5 b=0x7fffffffffffffff r=0 q=1
a=0x2 b=0x8000000000000000 r=1 q=0
a=0x490444049ab1ebda b=0x8000000000000000 r=1 q=0
a=0x2 b=0x3 r=0 q=1
a=0x3130a917633a06f5 b=0x8000000000000000 r=1 q=0
a=0x7fffffffffffffff b=0x0 r=1 q=0
a=0x5 b=0x5 r=1 q=0

# setp and its complement
-- insn setp.ge.u16 r|q, a, b;
-- regs a:b16 b:b16 -> r:pred q:pred
a=0x2 b=0xc0b r=0 q=1
a=0x8000 b=0xffdd r=0 q=1
a=0x2 b=0xe03d r=0 q=1
a=0x8000 b=0x3 r=1 q=0
a=0x7fff b=0xfa79 r=0 q=1
a=0x55 b=0xffdd r=0 q=1
a=0x1d0d b=0x8001 r=0 q=1
a=0xad5a b=0xc0b r=1 q=0
a=0x55 b=0x3 r=1 q=0
a=0x2 b=0xffff r=0 q=1
a=0x3 b=0x7fff r=0 q=1
a=0x3 b=0xffdd r=0 q=1
a=0x5 b=0x5 r=1 q=0

# setp and its complement
-- insn setp.ge.s16 r|q, a, b;
-- regs a:b16 b:b16 -> r:pred q:pred
a=0x37d5 b=0x8fbe r=1 q=0
a=0x8000 b=0x7fff r=0 q=1
a=0x8001 b=0x0 r=0 q=1
a=0x78b7 b=0x23c2 r=1 q=0
a=0x8000 b=0xb8ae r=0 q=1
a=0x4dc0 b=0x23c2 r=1 q=0
a=0x4dc0 b=0x8000 r=1 q=0
a=0x7fff b=0x8001 r=1 q=0
a=0x7900 b=0xffff r=1 q=0
a=0x1 b=0x1 r=1 q=0
a=0x2 b=0x23c2 r=0 q=1
a=0x0 b=0x8fbe r=1 q=0
a=0x5 b=0x5 r=1 q=0

# unsigned names
-- insn setp.lo.u32 r, a, b;
-- regs a:u32 b:u32 -> r:pred
a=0x80000001 b=0x3 r=0
a=0xffffffff b=0x7fffffff r=0
a=0x713eead4 b=0x0 r=0
a=0xffffffff b=0x55 r=0
a=0xaf38d958 b=0x55 r=0
a=0xffffffff b=0x0 r=0
a=0x1 b=0x3 r=1
a=0x80000001 b=0x80000001 r=0
a=0xf93e81a9 b=0x1 r=0
a=0x55 b=0x7fffffff r=1
a=0x3 b=0x0 r=0
a=0x713eead4 b=0x3 r=0

# unsigned names
-- insn setp.ls.u32 r, a, b;
-- regs a:u32 b:u32 -> r:pred
a=0x3 b=0x0 r=0
a=0x7fffffff b=0x0 r=0
a=0x3 b=0x444e3568 r=1
a=0x37e9353b b=0x0 r=0
a=0x55 b=0xc496a1ed r=1
a=0x946f256e b=0x80000001 r=0
a=0x503b6038 b=0x3 r=0
a=0x80000000 b=0x80000000 r=1
a=0x0 b=0x55 r=1
a=0x93f0901c b=0x7fffffff r=0
a=0x7fffffff b=0xffffffff r=1
a=0x80000001 b=0x2 r=0

# unsigned names
-- insn setp.hi.u32 r, a, b;
-- regs a:u32 b:u32 -> r:pred
a=0x2 b=0x55 r=0
a=0x2 b=0x2 r=0
a=0x7fffffff b=0x11776bcc r=1
a=0xffffffff b=0xffffffff r=0
a=0x80000001 b=0x3 r=1
a=0x2 b=0x11776bcc r=0
a=0xec41d31e b=0x55 r=1
a=0x55 b=0x80000001 r=0
a=0x13c5f09 b=0x3 r=1
a=0x3c60cb29 b=0x3 r=1
a=0x3c60cb29 b=0x2 r=1
a=0x55 b=0x80000000 r=0

# unsigned names
-- insn setp.hs.u32 r, a, b;
-- regs a:u32 b:u32 -> r:pred
a=0x1efe5aa9 b=0x2 r=1
a=0x80000001 b=0x65ae5593 r=1
a=0x55 b=0xffffffff r=0
a=0x7fffffff b=0xaa1bfa3e r=0
a=0x55 b=0x80000001 r=0
a=0x72cd2672 b=0x1 r=1
a=0x0 b=0x55 r=0
a=0x80000000 b=0x3 r=1
a=0xffffffff b=0x7b1fd217 r=1
a=0x1 b=0x3 r=0
a=0x2 b=0xdeab5ccf r=0
a=0x3 b=0x80000000 r=0

# ordered and unordered
-- insn setp.eq.f32 r, a, b;
-- regs a:f32 b:f32 -> r:pred
a=0x0.0p+0 b=0x0.0p+0 r=1
a=0x0.0p+0 b=-0x0.0p+0 r=1
a=0x0.0p+0 b=0x1.0000000000000p+0 r=0
a=0x0.0p+0 b=-0x1.0000000000000p+0 r=0
a=0x0.0p+0 b=0x1.8000000000000p+0 r=0
a=0x0.0p+0 b=inf r=0
a=0x0.0p+0 b=-inf r=0
a=0x0.0p+0 b=nan r=0
a=0x0.0p+0 b=0x1.8000000000000p+1 r=0
a=-0x0.0p+0 b=0x0.0p+0 r=1
a=-0x0.0p+0 b=-0x0.0p+0 r=1
a=-0x0.0p+0 b=0x1.0000000000000p+0 r=0
a=-0x0.0p+0 b=-0x1.0000000000000p+0 r=0
a=-0x0.0p+0 b=0x1.8000000000000p+0 r=0
a=-0x0.0p+0 b=inf r=0
a=-0x0.0p+0 b=-inf r=0
a=-0x0.0p+0 b=nan r=0
a=-0x0.0p+0 b=0x1.8000000000000p+1 r=0
a=0x1.0000000000000p+0 b=0x0.0p+0 r=0
a=0x1.0000000000000p+0 b=-0x0.0p+0 r=0
a=0x1.0000000000000p+0 b=0x1.0000000000000p+0 r=1
a=0x1.0000000000000p+0 b=-0x1.0000000000000p+0 r=0
a=0x1.0000000000000p+0 b=0x1.8000000000000p+0 r=0
a=0x1.0000000000000p+0 b=inf r=0
a=0x1.0000000000000p+0 b=-inf r=0
a=0x1.0000000000000p+0 b=nan r=0
a=0x1.0000000000000p+0 b=0x1.8000000000000p+1 r=0
a=-0x1.0000000000000p+0 b=0x0.0p+0 r=0
a=-0x1.0000000000000p+0 b=-0x0.0p+0 r=0
a=-0x1.0000000000000p+0 b=0x1.0000000000000p+0 r=0
a=-0x1.0000000000000p+0 b=-0x1.0000000000000p+0 r=1
a=-0x1.0000000000000p+0 b=0x1.8000000000000p+0 r=0
a=-0x1.0000000000000p+0 b=inf r=0
a=-0x1.0000000000000p+0 b=-inf r=0
a=-0x1.0000000000000p+0 b=nan r=0
a=-0x1.0000000000000p+0 b=0x1.8000000000000p+1 r=0
a=0x1.8000000000000p+0 b=0x0.0p+0 r=0
a=0x1.8000000000000p+0 b=-0x0.0p+0 r=0
a=0x1.8000000000000p+0 b=0x1.0000000000000p+0 r=0
a=0x1.8000000000000p+0 b=-0x1.0000000000000p+0 r=0
a=0x1.8000000000000p+0 b=0x1.8000000000000p+0 r=1
a=0x1.8000000000000p+0 b=inf r=0
a=0x1.8000000000000p+0 b=-inf r=0
a=0x1.8000000000000p+0 b=nan r=0
a=0x1.8000000000000p+0 b=0x1.8000000000000p+1 r=0
a=inf b=0x0.0p+0 r=0
a=inf b=-0x0.0p+0 r=0
a=inf b=0x1.0000000000000p+0 r=0
a=inf b=-0x1.0000000000000p+0 r=0
a=inf b=0x1.8000000000000p+0 r=0
a=inf b=inf r=1
a=inf b=-inf r=0
a=inf b=nan r=0
a=inf b=0x1.8000000000000p+1 r=0
a=-inf b=0x0.0p+0 r=0
a=-inf b=-0x0.0p+0 r=0
a=-inf b=0x1.0000000000000p+0 r=0
a=-inf b=-0x1.0000000000000p+0 r=0
a=-inf b=0x1.8000000000000p+0 r=0
a=-inf b=inf r=0
a=-inf b=-inf r=1
a=-inf b=nan r=0
a=-inf b=0x1.8000000000000p+1 r=0
a=nan b=0x0.0p+0 r=0
a=nan b=-0x0.0p+0 r=0
a=nan b=0x1.0000000000000p+0 r=0
a=nan b=-0x1.0000000000000p+0 r=0
a=nan b=0x1.8000000000000p+0 r=0
a=nan b=inf r=0
a=nan b=-inf r=0
a=nan b=nan r=0
a=nan b=0x1.8000000000000p+1 r=0
a=0x1.8000000000000p+1 b=0x0.0p+0 r=0
a=0x1.8000000000000p+1 b=-0x0.0p+0 r=0
a=0x1.8000000000000p+1 b=0x1.0000000000000p+0 r=0
a=0x1.8000000000000p+1 b=-0x1.0000000000000p+0 r=0
a=0x1.8000000000000p+1 b=0x1.8000000000000p+0 r=0
a=0x1.8000000000000p+1 b=inf r=0
a=0x1.8000000000000p+1 b=-inf r=0
a=0x1.8000000000000p+1 b=nan r=0
a=0x1.8000000000000p+1 b=0x1.8000000000000p+1 r=1

# ordered and unordered
-- insn setp.eq.f64 r, a, b;
-- regs a:f64 b:f64 -> r:pred
a=0x0.0p+0 b=0x0.0p+0 r=1
a=0x0.0p+0 b=-0x0.0p+0 r=1
a=0x0.0p+0 b=0x1.0000000000000p+0 r=0
a=0x0.0p+0 b=-0x1.0000000000000p+0 r=0
a=0x0.0p+0 b=0x1.8000000000000p+0 r=0
a=0x0.0p+0 b=inf r=0
a=0x0.0p+0 b=-inf r=0
a=0x0.0p+0 b=nan r=0
a=0x0.0p+0 b=0x1.8000000000000p+1 r=0
a=-0x0.0p+0 b=0x0.0p+0 r=1
a=-0x0.0p+0 b=-0x0.0p+0 r=1
a=-0x0.0p+0 b=0x1.0000000000000p+0 r=0
a=-0x0.0p+0 b=-0x1.0000000000000p+0 r=0
a=-0x0.0p+0 b=0x1.8000000000000p+0 r=0
a=-0x0.0p+0 b=inf r=0
a=-0x0.0p+0 b=-inf r=0
a=-0x0.0p+0 b=nan r=0
a=-0x0.0p+0 b=0x1.8000000000000p+1 r=0
a=0x1.0000000000000p+0 b=0x0.0p+0 r=0
a=0x1.0000000000000p+0 b=-0x0.0p+0 r=0
a=0x1.0000000000000p+0 b=0x1.0000000000000p+0 r=1
a=0x1.0000000000000p+0 b=-0x1.0000000000000p+0 r=0
a=0x1.0000000000000p+0 b=0x1.8000000000000p+0 r=0
a=0x1.0000000000000p+0 b=inf r=0
a=0x1.0000000000000p+0 b=-inf r=0
a=0x1.0000000000000p+0 b=nan r=0
a=0x1.0000000000000p+0 b=0x1.8000000000000p+1 r=0
a=-0x1.0000000000000p+0 b=0x0.0p+0 r=0
a=-0x1.0000000000000p+0 b=-0x0.0p+0 r=0
a=-0x1.0000000000000p+0 b=0x1.0000000000000p+0 r=0
a=-0x1.0000000000000p+0 b=-0x1.0000000000000p+0 r=1
a=-0x1.0000000000000p+0 b=0x1.8000000000000p+0 r=0
a=-0x1.0000000000000p+0 b=inf r=0
a=-0x1.0000000000000p+0 b=-inf r=0
a=-0x1.0000000000000p+0 b=nan r=0
a=-0x1.0000000000000p+0 b=0x1.8000000000000p+1 r=0
a=0x1.8000000000000p+0 b=0x0.0p+0 r=0
a=0x1.8000000000000p+0 b=-0x0.0p+0 r=0
a=0x1.8000000000000p+0 b=0x1.0000000000000p+0 r=0
a=0x1.8000000000000p+0 b=-0x1.0000000000000p+0 r=0
a=0x1.8000000000000p+0 b=0x1.8000000000000p+0 r=1
a=0x1.8000000000000p+0 b=inf r=0
a=0x1.8000000000000p+0 b=-inf r=0
a=0x1.8000000000000p+0 b=nan r=0
a=0x1.8000000000000p+0 b=0x1.8000000000000p+1 r=0
a=inf b=0x0.0p+0 r=0
a=inf b=-0x0.0p+0 r=0
a=inf b=0x1.0000000000000p+0 r=0
a=inf b=-0x1.0000000000000p+0 r=0
a=inf b=0x1.8000000000000p+0 r=0
a=inf b=inf r=1
a=inf b=-inf r=0
a=inf b=nan r=0
a=inf b=0x1.8000000000000p+1 r=0
a=-inf b=0x0.0p+0 r=0
a=-inf b=-0x0.0p+0 r=0
a=-inf b=0x1.0000000000000p+0 r=0
a=-inf b=-0x1.0000000000000p+0 r=0
a=-inf b=0x1.8000000000000p+0 r=0
a=-inf b=inf r=0
a=-inf b=-inf r=1
a=-inf b=nan r=0
a=-inf b=0x1.8000000000000p+1 r=0
a=nan b=0x0.0p+0 r=0
a=nan b=-0x0.0p+0 r=0
a=nan b=0x1.0000000000000p+0 r=0
a=nan b=-0x1.0000000000000p+0 r=0
a=nan b=0x1.8000000000000p+0 r=0
a=nan b=inf r=0
a=nan b=-inf r=0
a=nan b=nan r=0
a=nan b=0x1.8000000000000p+1 r=0
a=0x1.8000000000000p+1 b=0x0.0p+0 r=0
a=0x1.8000000000000p+1 b=-0x0.0p+0 r=0
a=0x1.8000000000000p+1 b=0x1.0000000000000p+0 r=0
a=0x1.8000000000000p+1 b=-0x1.0000000000000p+0 r=0
a=0x1.8000000000000p+1 b=0x1.8000000000000p+0 r=0
a=0x1.8000000000000p+1 b=inf r=0
a=0x1.8000000000000p+1 b=-inf r=0
a=0x1.8000000000000p+1 b=nan r=0
a=0x1.8000000000000p+1 b=0x1.8000000000000p+1 r=1

# ordered and unordered
-- insn setp.ne.f32 r, a, b;
-- regs a:f32 b:f32 -> r:pred
a=0x0.0p+0 b=0x0.0p+0 r=0
a=0x0.0p+0 b=-0x0.0p+0 r=0
a=0x0.0p+0 b=0x1.0000000000000p+0 r=1
a=0x0.0p+0 b=-0x1.0000000000000p+0 r=1
a=0x0.0p+0 b=0x1.8000000000000p+0 r=1
a=0x0.0p+0 b=inf r=1
a=0x0.0p+0 b=-inf r=1
a=0x0.0p+0 b=nan r=0
a=0x0.0p+0 b=0x1.8000000000000p+1 r=1
a=-0x0.0p+0 b=0x0.0p+0 r=0
a=-0x0.0p+0 b=-0x0.0p+0 r=0
a=-0x0.0p+0 b=0x1.0000000000000p+0 r=1
a=-0x0.0p+0 b=-0x1.0000000000000p+0 r=1
a=-0x0.0p+0 b=0x1.8000000000000p+0 r=1
a=-0x0.0p+0 b=inf r=1
a=-0x0.0p+0 b=-inf r=1
a=-0x0.0p+0 b=nan r=0
a=-0x0.0p+0 b=0x1.8000000000000p+1 r=1
a=0x1.0000000000000p+0 b=0x0.0p+0 r=1
a=0x1.0000000000000p+0 b=-0x0.0p+0 r=1
a=0x1.0000000000000p+0 b=0x1.0000000000000p+0 r=0
a=0x1.0000000000000p+0 b=-0x1.0000000000000p+0 r=1
a=0x1.0000000000000p+0 b=0x1.8000000000000p+0 r=1
a=0x1.0000000000000p+0 b=inf r=1
a=0x1.0000000000000p+0 b=-inf r=1
a=0x1.0000000000000p+0 b=nan r=0
a=0x1.0000000000000p+0 b=0x1.8000000000000p+1 r=1
a=-0x1.0000000000000p+0 b=0x0.0p+0 r=1
a=-0x1.0000000000000p+0 b=-0x0.0p+0 r=1
a=-0x1.0000000000000p+0 b=0x1.0000000000000p+0 r=1
a=-0x1.0000000000000p+0 b=-0x1.0000000000000p+0 r=0
a=-0x1.0000000000000p+0 b=0x1.8000000000000p+0 r=1
a=-0x1.0000000000000p+0 b=inf r=1
a=-0x1.0000000000000p+0 b=-inf r=1
a=-0x1.0000000000000p+0 b=nan r=0
a=-0x1.0000000000000p+0 b=0x1.8000000000000p+1 r=1
a=0x1.8000000000000p+0 b=0x0.0p+0 r=1
a=0x1.8000000000000p+0 b=-0x0.0p+0 r=1
a=0x1.8000000000000p+0 b=0x1.0000000000000p+0 r=1
a=0x1.8000000000000p+0 b=-0x1.0000000000000p+0 r=1
a=0x1.8000000000000p+0 b=0x1.8000000000000p+0 r=0
a=0x1.8000000000000p+0 b=inf r=1
a=0x1.8000000000000p+0 b=-inf r=1
a=0x1.8000000000000p+0 b=nan r=0
a=0x1.8000000000000p+0 b=0x1.8000000000000p+1 r=1
a=inf b=0x0.0p+0 r=1
a=inf b=-0x0.0p+0 r=1
a=inf b=0x1.0000000000000p+0 r=1
a=inf b=-0x1.0000000000000p+0 r=1
a=inf b=0x1.8000000000000p+0 r=1
a=inf b=inf r=0
a=inf b=-inf r=1
a=inf b=nan r=0
a=inf b=0x1.8000000000000p+1 r=1
a=-inf b=0x0.0p+0 r=1
a=-inf b=-0x0.0p+0 r=1
a=-inf b=0x1.0000000000000p+0 r=1
a=-inf b=-0x1.0000000000000p+0 r=1
a=-inf b=0x1.8000000000000p+0 r=1
a=-inf b=inf r=1
a=-inf b=-inf r=0
a=-inf b=nan r=0
a=-inf b=0x1.8000000000000p+1 r=1
a=nan b=0x0.0p+0 r=0
a=nan b=-0x0.0p+0 r=0
a=nan b=0x1.0000000000000p+0 r=0
a=nan b=-0x1.0000000000000p+0 r=0
a=nan b=0x1.8000000000000p+0 r=0
a=nan b=inf r=0
a=nan b=-inf r=0
a=nan b=nan r=0
a=nan b=0x1.8000000000000p+1 r=0
a=0x1.8000000000000p+1 b=0x0.0p+0 r=1
a=0x1.8000000000000p+1 b=-0x0.0p+0 r=1
a=0x1.8000000000000p+1 b=0x1.0000000000000p+0 r=1
a=0x1.8000000000000p+1 b=-0x1.0000000000000p+0 r=1
a=0x1.8000000000000p+1 b=0x1.8000000000000p+0 r=1
a=0x1.8000000000000p+1 b=inf r=1
a=0x1.8000000000000p+1 b=-inf r=1
a=0x1.8000000000000p+1 b=nan r=0
a=0x1.8000000000000p+1 b=0x1.8000000000000p+1 r=0

# ordered and unordered
-- insn setp.ne.f64 r, a, b;
-- regs a:f64 b:f64 -> r:pred
a=0x0.0p+0 b=0x0.0p+0 r=0
a=0x0.0p+0 b=-0x0.0p+0 r=0
a=0x0.0p+0 b=0x1.0000000000000p+0 r=1
a=0x0.0p+0 b=-0x1.0000000000000p+0 r=1
a=0x0.0p+0 b=0x1.8000000000000p+0 r=1
a=0x0.0p+0 b=inf r=1
a=0x0.0p+0 b=-inf r=1
a=0x0.0p+0 b=nan r=0
a=0x0.0p+0 b=0x1.8000000000000p+1 r=1
a=-0x0.0p+0 b=0x0.0p+0 r=0
a=-0x0.0p+0 b=-0x0.0p+0 r=0
a=-0x0.0p+0 b=0x1.0000000000000p+0 r=1
a=-0x0.0p+0 b=-0x1.0000000000000p+0 r=1
a=-0x0.0p+0 b=0x1.8000000000000p+0 r=1
a=-0x0.0p+0 b=inf r=1
a=-0x0.0p+0 b=-inf r=1
a=-0x0.0p+0 b=nan r=0
a=-0x0.0p+0 b=0x1.8000000000000p+1 r=1
a=0x1.0000000000000p+0 b=0x0.0p+0 r=1
a=0x1.0000000000000p+0 b=-0x0.0p+0 r=1
a=0x1.0000000000000p+0 b=0x1.0000000000000p+0 r=0
a=0x1.0000000000000p+0 b=-0x1.0000000000000p+0 r=1
a=0x1.0000000000000p+0 b=0x1.8000000000000p+0 r=1
a=0x1.0000000000000p+0 b=inf r=1
a=0x1.0000000000000p+0 b=-inf r=1
a=0x1.0000000000000p+0 b=nan r=0
a=0x1.0000000000000p+0 b=0x1.8000000000000p+1 r=1
a=-0x1.0000000000000p+0 b=0x0.0p+0 r=1
a=-0x1.0000000000000p+0 b=-0x0.0p+0 r=1
a=-0x1.0000000000000p+0 b=0x1.0000000000000p+0 r=1
a=-0x1.0000000000000p+0 b=-0x1.0000000000000p+0 r=0
a=-0x1.0000000000000p+0 b=0x1.8000000000000p+0 r=1
a=-0x1.0000000000000p+0 b=inf r=1
a=-0x1.0000000000000p+0 b=-inf r=1
a=-0x1.0000000000000p+0 b=nan r=0
a=-0x1.0000000000000p+0 b=0x1.8000000000000p+1 r=1
a=0x1.8000000000000p+0 b=0x0.0p+0 r=1
a=0x1.8000000000000p+0 b=-0x0.0p+0 r=1
a=0x1.8000000000000p+0 b=0x1.0000000000000p+0 r=1
a=0x1.8000000000000p+0 b=-0x1.0000000000000p+0 r=1
a=0x1.8000000000000p+0 b=0x1.8000000000000p+0 r=0
a=0x1.8000000000000p+0 b=inf r=1
a=0x1.8000000000000p+0 b=-inf r=1
a=0x1.8000000000000p+0 b=nan r=0
a=0x1.8000000000000p+0 b=0x1.8000000000000p+1 r=1
a=inf b=0x0.0p+0 r=1
a=inf b=-0x0.0p+0 r=1
a=inf b=0x1.0000000000000p+0 r=1
a=inf b=-0x1.0000000000000p+0 r=1
a=inf b=0x1.8000000000000p+0 r=1
a=inf b=inf r=0
a=inf b=-inf r=1
a=inf b=nan r=0
a=inf b=0x1.8000000000000p+1 r=1
a=-inf b=0x0.0p+0 r=1
a=-inf b=-0x0.0p+0 r=1
a=-inf b=0x1.0000000000000p+0 r=1
a=-inf b=-0x1.0000000000000p+0 r=1
a=-inf b=0x1.8000000000000p+0 r=1
a=-inf b=inf r=1
a=-inf b=-inf r=0
a=-inf b=nan r=0
a=-inf b=0x1.8000000000000p+1 r=1
a=nan b=0x0.0p+0 r=0
a=nan b=-0x0.0p+0 r=0
a=nan b=0x1.0000000000000p+0 r=0
a=nan b=-0x1.0000000000000p+0 r=0
a=nan b=0x1.8000000000000p+0 r=0
a=nan b=inf r=0
a=nan b=-inf r=0
a=nan b=nan r=0
a=nan b=0x1.8000000000000p+1 r=0
a=0x1.8000000000000p+1 b=0x0.0p+0 r=1
a=0x1.8000000000000p+1 b=-0x0.0p+0 r=1
a=0x1.8000000000000p+1 b=0x1.0000000000000p+0 r=1
a=0x1.8000000000000p+1 b=-0x1.0000000000000p+0 r=1
a=0x1.8000000000000p+1 b=0x1.8000000000000p+0 r=1
a=0x1.8000000000000p+1 b=inf r=1
a=0x1.8000000000000p+1 b=-inf r=1
a=0x1.8000000000000p+1 b=nan r=0
a=0x1.8000000000000p+1 b=0x1.8000000000000p+1 r=0

# ordered and unordered
-- insn setp.lt.f32 r, a, b;
-- regs a:f32 b:f32 -> r:pred
a=0x0.0p+0 b=0x0.0p+0 r=0
a=0x0.0p+0 b=-0x0.0p+0 r=0
a=0x0.0p+0 b=0x1.0000000000000p+0 r=1
a=0x0.0p+0 b=-0x1.0000000000000p+0 r=0
a=0x0.0p+0 b=0x1.8000000000000p+0 r=1
a=0x0.0p+0 b=inf r=1
a=0x0.0p+0 b=-inf r=0
a=0x0.0p+0 b=nan r=0
a=0x0.0p+0 b=0x1.8000000000000p+1 r=1
a=-0x0.0p+0 b=0x0.0p+0 r=0
a=-0x0.0p+0 b=-0x0.0p+0 r=0
a=-0x0.0p+0 b=0x1.0000000000000p+0 r=1
a=-0x0.0p+0 b=-0x1.0000000000000p+0 r=0
a=-0x0.0p+0 b=0x1.8000000000000p+0 r=1
a=-0x0.0p+0 b=inf r=1
a=-0x0.0p+0 b=-inf r=0
a=-0x0.0p+0 b=nan r=0
a=-0x0.0p+0 b=0x1.8000000000000p+1 r=1
a=0x1.0000000000000p+0 b=0x0.0p+0 r=0
a=0x1.0000000000000p+0 b=-0x0.0p+0 r=0
a=0x1.0000000000000p+0 b=0x1.0000000000000p+0 r=0
a=0x1.0000000000000p+0 b=-0x1.0000000000000p+0 r=0
a=0x1.0000000000000p+0 b=0x1.8000000000000p+0 r=1
a=0x1.0000000000000p+0 b=inf r=1
a=0x1.0000000000000p+0 b=-inf r=0
a=0x1.0000000000000p+0 b=nan r=0
a=0x1.0000000000000p+0 b=0x1.8000000000000p+1 r=1
a=-0x1.0000000000000p+0 b=0x0.0p+0 r=1
a=-0x1.0000000000000p+0 b=-0x0.0p+0 r=1
a=-0x1.0000000000000p+0 b=0x1.0000000000000p+0 r=1
a=-0x1.0000000000000p+0 b=-0x1.0000000000000p+0 r=0
a=-0x1.0000000000000p+0 b=0x1.8000000000000p+0 r=1
a=-0x1.0000000000000p+0 b=inf r=1
a=-0x1.0000000000000p+0 b=-inf r=0
a=-0x1.0000000000000p+0 b=nan r=0
a=-0x1.0000000000000p+0 b=0x1.8000000000000p+1 r=1
a=0x1.8000000000000p+0 b=0x0.0p+0 r=0
a=0x1.8000000000000p+0 b=-0x0.0p+0 r=0
a=0x1.8000000000000p+0 b=0x1.0000000000000p+0 r=0
a=0x1.8000000000000p+0 b=-0x1.0000000000000p+0 r=0
a=0x1.8000000000000p+0 b=0x1.8000000000000p+0 r=0
a=0x1.8000000000000p+0 b=inf r=1
a=0x1.8000000000000p+0 b=-inf r=0
a=0x1.8000000000000p+0 b=nan r=0
a=0x1.8000000000000p+0 b=0x1.8000000000000p+1 r=1
a=inf b=0x0.0p+0 r=0
a=inf b=-0x0.0p+0 r=0
a=inf b=0x1.0000000000000p+0 r=0
a=inf b=-0x1.0000000000000p+0 r=0
a=inf b=0x1.8000000000000p+0 r=0
a=inf b=inf r=0
a=inf b=-inf r=0
a=inf b=nan r=0
a=inf b=0x1.8000000000000p+1 r=0
a=-inf b=0x0.0p+0 r=1
a=-inf b=-0x0.0p+0 r=1
a=-inf b=0x1.0000000000000p+0 r=1
a=-inf b=-0x1.0000000000000p+0 r=1
a=-inf b=0x1.8000000000000p+0 r=1
a=-inf b=inf r=1
a=-inf b=-inf r=0
a=-inf b=nan r=0
a=-inf b=0x1.8000000000000p+1 r=1
a=nan b=0x0.0p+0 r=0
a=nan b=-0x0.0p+0 r=0
a=nan b=0x1.0000000000000p+0 r=0
a=nan b=-0x1.0000000000000p+0 r=0
a=nan b=0x1.8000000000000p+0 r=0
a=nan b=inf r=0
a=nan b=-inf r=0
a=nan b=nan r=0
a=nan b=0x1.8000000000000p+1 r=0
a=0x1.8000000000000p+1 b=0x0.0p+0 r=0
a=0x1.8000000000000p+1 b=-0x0.0p+0 r=0
a=0x1.8000000000000p+1 b=0x1.0000000000000p+0 r=0
a=0x1.8000000000000p+1 b=-0x1.0000000000000p+0 r=0
a=0x1.8000000000000p+1 b=0x1.8000000000000p+0 r=0
a=0x1.8000000000000p+1 b=inf r=1
a=0x1.8000000000000p+1 b=-inf r=0
a=0x1.8000000000000p+1 b=nan r=0
a=0x1.8000000000000p+1 b=0x1.8000000000000p+1 r=0

# ordered and unordered
-- insn setp.lt.f64 r, a, b;
-- regs a:f64 b:f64 -> r:pred
a=0x0.0p+0 b=0x0.0p+0 r=0
a=0x0.0p+0 b=-0x0.0p+0 r=0
a=0x0.0p+0 b=0x1.0000000000000p+0 r=1
a=0x0.0p+0 b=-0x1.0000000000000p+0 r=0
a=0x0.0p+0 b=0x1.8000000000000p+0 r=1
a=0x0.0p+0 b=inf r=1
a=0x0.0p+0 b=-inf r=0
a=0x0.0p+0 b=nan r=0
a=0x0.0p+0 b=0x1.8000000000000p+1 r=1
a=-0x0.0p+0 b=0x0.0p+0 r=0
a=-0x0.0p+0 b=-0x0.0p+0 r=0
a=-0x0.0p+0 b=0x1.0000000000000p+0 r=1
a=-0x0.0p+0 b=-0x1.0000000000000p+0 r=0
a=-0x0.0p+0 b=0x1.8000000000000p+0 r=1
a=-0x0.0p+0 b=inf r=1
a=-0x0.0p+0 b=-inf r=0
a=-0x0.0p+0 b=nan r=0
a=-0x0.0p+0 b=0x1.8000000000000p+1 r=1
a=0x1.0000000000000p+0 b=0x0.0p+0 r=0
a=0x1.0000000000000p+0 b=-0x0.0p+0 r=0
a=0x1.0000000000000p+0 b=0x1.0000000000000p+0 r=0
a=0x1.0000000000000p+0 b=-0x1.0000000000000p+0 r=0
a=0x1.0000000000000p+0 b=0x1.8000000000000p+0 r=1
a=0x1.0000000000000p+0 b=inf r=1
a=0x1.0000000000000p+0 b=-inf r=0
a=0x1.0000000000000p+0 b=nan r=0
a=0x1.0000000000000p+0 b=0x1.8000000000000p+1 r=1
a=-0x1.0000000000000p+0 b=0x0.0p+0 r=1
a=-0x1.0000000000000p+0 b=-0x0.0p+0 r=1
a=-0x1.0000000000000p+0 b=0x1.0000000000000p+0 r=1
a=-0x1.0000000000000p+0 b=-0x1.0000000000000p+0 r=0
a=-0x1.0000000000000p+0 b=0x1.8000000000000p+0 r=1
a=-0x1.0000000000000p+0 b=inf r=1
a=-0x1.0000000000000p+0 b=-inf r=0
a=-0x1.0000000000000p+0 b=nan r=0
a=-0x1.0000000000000p+0 b=0x1.8000000000000p+1 r=1
a=0x1.8000000000000p+0 b=0x0.0p+0 r=0
a=0x1.8000000000000p+0 b=-0x0.0p+0 r=0
a=0x1.8000000000000p+0 b=0x1.0000000000000p+0 r=0
a=0x1.8000000000000p+0 b=-0x1.0000000000000p+0 r=0
a=0x1.8000000000000p+0 b=0x1.8000000000000p+0 r=0
a=0x1.8000000000000p+0 b=inf r=1
a=0x1.8000000000000p+0 b=-inf r=0
a=0x1.8000000000000p+0 b=nan r=0
a=0x1.8000000000000p+0 b=0x1.8000000000000p+1 r=1
a=inf b=0x0.0p+0 r=0
a=inf b=-0x0.0p+0 r=0
a=inf b=0x1.0000000000000p+0 r=0
a=inf b=-0x1.0000000000000p+0 r=0
a=inf b=0x1.8000000000000p+0 r=0
a=inf b=inf r=0
a=inf b=-inf r=0
a=inf b=nan r=0
a=inf b=0x1.8000000000000p+1 r=0
a=-inf b=0x0.0p+0 r=1
a=-inf b=-0x0.0p+0 r=1
a=-inf b=0x1.0000000000000p+0 r=1
a=-inf b=-0x1.0000000000000p+0 r=1
a=-inf b=0x1.8000000000000p+0 r=1
a=-inf b=inf r=1
a=-inf b=-inf r=0
a=-inf b=nan r=0
a=-inf b=0x1.8000000000000p+1 r=1
a=nan b=0x0.0p+0 r=0
a=nan b=-0x0.0p+0 r=0
a=nan b=0x1.0000000000000p+0 r=0
a=nan b=-0x1.0000000000000p+0 r=0
a=nan b=0x1.8000000000000p+0 r=0
a=nan b=inf r=0
a=nan b=-inf r=0
a=nan b=nan r=0
a=nan b=0x1.8000000000000p+1 r=0
a=0x1.8000000000000p+1 b=0x0.0p+0 r=0
a=0x1.8000000000000p+1 b=-0x0.0p+0 r=0
a=0x1.8000000000000p+1 b=0x1.0000000000000p+0 r=0
a=0x1.8000000000000p+1 b=-0x1.0000000000000p+0 r=0
a=0x1.8000000000000p+1 b=0x1.8000000000000p+0 r=0
a=0x1.8000000000000p+1 b=inf r=1
a=0x1.8000000000000p+1 b=-inf r=0
a=0x1.8000000000000p+1 b=nan r=0
a=0x1.8000000000000p+1 b=0x1.8000000000000p+1 r=0

# ordered and unordered
-- insn setp.le.f32 r, a, b;
-- regs a:f32 b:f32 -> r:pred
a=0x0.0p+0 b=0x0.0p+0 r=1
a=0x0.0p+0 b=-0x0.0p+0 r=1
a=0x0.0p+0 b=0x1.0000000000000p+0 r=1
a=0x0.0p+0 b=-0x1.0000000000000p+0 r=0
a=0x0.0p+0 b=0x1.8000000000000p+0 r=1
a=0x0.0p+0 b=inf r=1
a=0x0.0p+0 b=-inf r=0
a=0x0.0p+0 b=nan r=0
a=0x0.0p+0 b=0x1.8000000000000p+1 r=1
a=-0x0.0p+0 b=0x0.0p+0 r=1
a=-0x0.0p+0 b=-0x0.0p+0 r=1
a=-0x0.0p+0 b=0x1.0000000000000p+0 r=1
a=-0x0.0p+0 b=-0x1.0000000000000p+0 r=0
a=-0x0.0p+0 b=0x1.8000000000000p+0 r=1
a=-0x0.0p+0 b=inf r=1
a=-0x0.0p+0 b=-inf r=0
a=-0x0.0p+0 b=nan r=0
a=-0x0.0p+0 b=0x1.8000000000000p+1 r=1
a=0x1.0000000000000p+0 b=0x0.0p+0 r=0
a=0x1.0000000000000p+0 b=-0x0.0p+0 r=0
a=0x1.0000000000000p+0 b=0x1.0000000000000p+0 r=1
a=0x1.0000000000000p+0 b=-0x1.0000000000000p+0 r=0
a=0x1.0000000000000p+0 b=0x1.8000000000000p+0 r=1
a=0x1.0000000000000p+0 b=inf r=1
a=0x1.0000000000000p+0 b=-inf r=0
a=0x1.0000000000000p+0 b=nan r=0
a=0x1.0000000000000p+0 b=0x1.8000000000000p+1 r=1
a=-0x1.0000000000000p+0 b=0x0.0p+0 r=1
a=-0x1.0000000000000p+0 b=-0x0.0p+0 r=1
a=-0x1.0000000000000p+0 b=0x1.0000000000000p+0 r=1
a=-0x1.0000000000000p+0 b=-0x1.0000000000000p+0 r=1
a=-0x1.0000000000000p+0 b=0x1.8000000000000p+0 r=1
a=-0x1.0000000000000p+0 b=inf r=1
a=-0x1.0000000000000p+0 b=-inf r=0
a=-0x1.0000000000000p+0 b=nan r=0
a=-0x1.0000000000000p+0 b=0x1.8000000000000p+1 r=1
a=0x1.8000000000000p+0 b=0x0.0p+0 r=0
a=0x1.8000000000000p+0 b=-0x0.0p+0 r=0
a=0x1.8000000000000p+0 b=0x1.0000000000000p+0 r=0
a=0x1.8000000000000p+0 b=-0x1.0000000000000p+0 r=0
a=0x1.8000000000000p+0 b=0x1.8000000000000p+0 r=1
a=0x1.8000000000000p+0 b=inf r=1
a=0x1.8000000000000p+0 b=-inf r=0
a=0x1.8000000000000p+0 b=nan r=0
a=0x1.8000000000000p+0 b=0x1.8000000000000p+1 r=1
a=inf b=0x0.0p+0 r=0
a=inf b=-0x0.0p+0 r=0
a=inf b=0x1.0000000000000p+0 r=0
a=inf b=-0x1.0000000000000p+0 r=0
a=inf b=0x1.8000000000000p+0 r=0
a=inf b=inf r=1
a=inf b=-inf r=0
a=inf b=nan r=0
a=inf b=0x1.8000000000000p+1 r=0
a=-inf b=0x0.0p+0 r=1
a=-inf b=-0x0.0p+0 r=1
a=-inf b=0x1.0000000000000p+0 r=1
a=-inf b=-0x1.0000000000000p+0 r=1
a=-inf b=0x1.8000000000000p+0 r=1
a=-inf b=inf r=1
a=-inf b=-inf r=1
a=-inf b=nan r=0
a=-inf b=0x1.8000000000000p+1 r=1
a=nan b=0x0.0p+0 r=0
a=nan b=-0x0.0p+0 r=0
a=nan b=0x1.0000000000000p+0 r=0
a=nan b=-0x1.0000000000000p+0 r=0
a=nan b=0x1.8000000000000p+0 r=0
a=nan b=inf r=0
a=nan b=-inf r=0
a=nan b=nan r=0
a=nan b=0x1.8000000000000p+1 r=0
a=0x1.8000000000000p+1 b=0x0.0p+0 r=0
a=0x1.8000000000000p+1 b=-0x0.0p+0 r=0
a=0x1.8000000000000p+1 b=0x1.0000000000000p+0 r=0
a=0x1.8000000000000p+1 b=-0x1.0000000000000p+0 r=0
a=0x1.8000000000000p+1 b=0x1.8000000000000p+0 r=0
a=0x1.8000000000000p+1 b=inf r=1
a=0x1.8000000000000p+1 b=-inf r=0
a=0x1.8000000000000p+1 b=nan r=0
a=0x1.8000000000000p+1 b=0x1.8000000000000p+1 r=1

# ordered and unordered
-- insn setp.le.f64 r, a, b;
-- regs a:f64 b:f64 -> r:pred
a=0x0.0p+0 b=0x0.0p+0 r=1
a=0x0.0p+0 b=-0x0.0p+0 r=1
a=0x0.0p+0 b=0x1.0000000000000p+0 r=1
a=0x0.0p+0 b=-0x1.0000000000000p+0 r=0
a=0x0.0p+0 b=0x1.8000000000000p+0 r=1
a=0x0.0p+0 b=inf r=1
a=0x0.0p+0 b=-inf r=0
a=0x0.0p+0 b=nan r=0
a=0x0.0p+0 b=0x1.8000000000000p+1 r=1
a=-0x0.0p+0 b=0x0.0p+0 r=1
a=-0x0.0p+0 b=-0x0.0p+0 r=1
a=-0x0.0p+0 b=0x1.0000000000000p+0 r=1
a=-0x0.0p+0 b=-0x1.0000000000000p+0 r=0
a=-0x0.0p+0 b=0x1.8000000000000p+0 r=1
a=-0x0.0p+0 b=inf r=1
a=-0x0.0p+0 b=-inf r=0
a=-0x0.0p+0 b=nan r=0
a=-0x0.0p+0 b=0x1.8000000000000p+1 r=1
a=0x1.0000000000000p+0 b=0x0.0p+0 r=0
a=0x1.0000000000000p+0 b=-0x0.0p+0 r=0
a=0x1.0000000000000p+0 b=0x1.0000000000000p+0 r=1
a=0x1.0000000000000p+0 b=-0x1.0000000000000p+0 r=0
a=0x1.0000000000000p+0 b=0x1.8000000000000p+0 r=1
a=0x1.0000000000000p+0 b=inf r=1
a=0x1.0000000000000p+0 b=-inf r=0
a=0x1.0000000000000p+0 b=nan r=0
a=0x1.0000000000000p+0 b=0x1.8000000000000p+1 r=1
a=-0x1.0000000000000p+0 b=0x0.0p+0 r=1
a=-0x1.0000000000000p+0 b=-0x0.0p+0 r=1
a=-0x1.0000000000000p+0 b=0x1.0000000000000p+0 r=1
a=-0x1.0000000000000p+0 b=-0x1.0000000000000p+0 r=1
a=-0x1.0000000000000p+0 b=0x1.8000000000000p+0 r=1
a=-0x1.0000000000000p+0 b=inf r=1
a=-0x1.0000000000000p+0 b=-inf r=0
a=-0x1.0000000000000p+0 b=nan r=0
a=-0x1.0000000000000p+0 b=0x1.8000000000000p+1 r=1
a=0x1.8000000000000p+0 b=0x0.0p+0 r=0
a=0x1.8000000000000p+0 b=-0x0.0p+0 r=0
a=0x1.8000000000000p+0 b=0x1.0000000000000p+0 r=0
a=0x1.8000000000000p+0 b=-0x1.0000000000000p+0 r=0
a=0x1.8000000000000p+0 b=0x1.8000000000000p+0 r=1
a=0x1.8000000000000p+0 b=inf r=1
a=0x1.8000000000000p+0 b=-inf r=0
a=0x1.8000000000000p+0 b=nan r=0
a=0x1.8000000000000p+0 b=0x1.8000000000000p+1 r=1
a=inf b=0x0.0p+0 r=0
a=inf b=-0x0.0p+0 r=0
a=inf b=0x1.0000000000000p+0 r=0
a=inf b=-0x1.0000000000000p+0 r=0
a=inf b=0x1.8000000000000p+0 r=0
a=inf b=inf r=1
a=inf b=-inf r=0
a=inf b=nan r=0
a=inf b=0x1.8000000000000p+1 r=0
a=-inf b=0x0.0p+0 r=1
a=-inf b=-0x0.0p+0 r=1
a=-inf b=0x1.0000000000000p+0 r=1
a=-inf b=-0x1.0000000000000p+0 r=1
a=-inf b=0x1.8000000000000p+0 r=1
a=-inf b=inf r=1
a=-inf b=-inf r=1
a=-inf b=nan r=0
a=-inf b=0x1.8000000000000p+1 r=1
a=nan b=0x0.0p+0 r=0
a=nan b=-0x0.0p+0 r=0
a=nan b=0x1.0000000000000p+0 r=0
a=nan b=-0x1.0000000000000p+0 r=0
a=nan b=0x1.8000000000000p+0 r=0
a=nan b=inf r=0
a=nan b=-inf r=0
a=nan b=nan r=0
a=nan b=0x1.8000000000000p+1 r=0
a=0x1.8000000000000p+1 b=0x0.0p+0 r=0
a=0x1.8000000000000p+1 b=-0x0.0p+0 r=0
a=0x1.8000000000000p+1 b=0x1.0000000000000p+0 r=0
a=0x1.8000000000000p+1 b=-0x1.0000000000000p+0 r=0
a=0x1.8000000000000p+1 b=0x1.8000000000000p+0 r=0
a=0x1.8000000000000p+1 b=inf r=1
a=0x1.8000000000000p+1 b=-inf r=0
a=0x1.8000000000000p+1 b=nan r=0
a=0x1.8000000000000p+1 b=0x1.8000000000000p+1 r=1

# ordered and unordered
-- insn setp.gt.f32 r, a, b;
-- regs a:f32 b:f32 -> r:pred
a=0x0.0p+0 b=0x0.0p+0 r=0
a=0x0.0p+0 b=-0x0.0p+0 r=0
a=0x0.0p+0 b=0x1.0000000000000p+0 r=0
a=0x0.0p+0 b=-0x1.0000000000000p+0 r=1
a=0x0.0p+0 b=0x1.8000000000000p+0 r=0
a=0x0.0p+0 b=inf r=0
a=0x0.0p+0 b=-inf r=1
a=0x0.0p+0 b=nan r=0
a=0x0.0p+0 b=0x1.8000000000000p+1 r=0
a=-0x0.0p+0 b=0x0.0p+0 r=0
a=-0x0.0p+0 b=-0x0.0p+0 r=0
a=-0x0.0p+0 b=0x1.0000000000000p+0 r=0
a=-0x0.0p+0 b=-0x1.0000000000000p+0 r=1
a=-0x0.0p+0 b=0x1.8000000000000p+0 r=0
a=-0x0.0p+0 b=inf r=0
a=-0x0.0p+0 b=-inf r=1
a=-0x0.0p+0 b=nan r=0
a=-0x0.0p+0 b=0x1.8000000000000p+1 r=0
a=0x1.0000000000000p+0 b=0x0.0p+0 r=1
a=0x1.0000000000000p+0 b=-0x0.0p+0 r=1
a=0x1.0000000000000p+0 b=0x1.0000000000000p+0 r=0
a=0x1.0000000000000p+0 b=-0x1.0000000000000p+0 r=1
a=0x1.0000000000000p+0 b=0x1.8000000000000p+0 r=0
a=0x1.0000000000000p+0 b=inf r=0
a=0x1.0000000000000p+0 b=-inf r=1
a=0x1.0000000000000p+0 b=nan r=0
a=0x1.0000000000000p+0 b=0x1.8000000000000p+1 r=0
a=-0x1.0000000000000p+0 b=0x0.0p+0 r=0
a=-0x1.0000000000000p+0 b=-0x0.0p+0 r=0
a=-0x1.0000000000000p+0 b=0x1.0000000000000p+0 r=0
a=-0x1.0000000000000p+0 b=-0x1.0000000000000p+0 r=0
a=-0x1.0000000000000p+0 b=0x1.8000000000000p+0 r=0
a=-0x1.0000000000000p+0 b=inf r=0
a=-0x1.0000000000000p+0 b=-inf r=1
a=-0x1.0000000000000p+0 b=nan r=0
a=-0x1.0000000000000p+0 b=0x1.8000000000000p+1 r=0
a=0x1.8000000000000p+0 b=0x0.0p+0 r=1
a=0x1.8000000000000p+0 b=-0x0.0p+0 r=1
a=0x1.8000000000000p+0 b=0x1.0000000000000p+0 r=1
a=0x1.8000000000000p+0 b=-0x1.0000000000000p+0 r=1
a=0x1.8000000000000p+0 b=0x1.8000000000000p+0 r=0
a=0x1.8000000000000p+0 b=inf r=0
a=0x1.8000000000000p+0 b=-inf r=1
a=0x1.8000000000000p+0 b=nan r=0
a=0x1.8000000000000p+0 b=0x1.8000000000000p+1 r=0
a=inf b=0x0.0p+0 r=1
a=inf b=-0x0.0p+0 r=1
a=inf b=0x1.0000000000000p+0 r=1
a=inf b=-0x1.0000000000000p+0 r=1
a=inf b=0x1.8000000000000p+0 r=1
a=inf b=inf r=0
a=inf b=-inf r=1
a=inf b=nan r=0
a=inf b=0x1.8000000000000p+1 r=1
a=-inf b=0x0.0p+0 r=0
a=-inf b=-0x0.0p+0 r=0
a=-inf b=0x1.0000000000000p+0 r=0
a=-inf b=-0x1.0000000000000p+0 r=0
a=-inf b=0x1.8000000000000p+0 r=0
a=-inf b=inf r=0
a=-inf b=-inf r=0
a=-inf b=nan r=0
a=-inf b=0x1.8000000000000p+1 r=0
a=nan b=0x0.0p+0 r=0
a=nan b=-0x0.0p+0 r=0
a=nan b=0x1.0000000000000p+0 r=0
a=nan b=-0x1.0000000000000p+0 r=0
a=nan b=0x1.8000000000000p+0 r=0
a=nan b=inf r=0
a=nan b=-inf r=0
a=nan b=nan r=0
a=nan b=0x1.8000000000000p+1 r=0
a=0x1.8000000000000p+1 b=0x0.0p+0 r=1
a=0x1.8000000000000p+1 b=-0x0.0p+0 r=1
a=0x1.8000000000000p+1 b=0x1.0000000000000p+0 r=1
a=0x1.8000000000000p+1 b=-0x1.0000000000000p+0 r=1
a=0x1.8000000000000p+1 b=0x1.8000000000000p+0 r=1
a=0x1.8000000000000p+1 b=inf r=0
a=0x1.8000000000000p+1 b=-inf r=1
a=0x1.8000000000000p+1 b=nan r=0
a=0x1.8000000000000p+1 b=0x1.8000000000000p+1 r=0

# ordered and unordered
-- insn setp.gt.f64 r, a, b;
-- regs a:f64 b:f64 -> r:pred
a=0x0.0p+0 b=0x0.0p+0 r=0
a=0x0.0p+0 b=-0x0.0p+0 r=0
a=0x0.0p+0 b=0x1.0000000000000p+0 r=0
a=0x0.0p+0 b=-0x1.0000000000000p+0 r=1
a=0x0.0p+0 b=0x1.8000000000000p+0 r=0
a=0x0.0p+0 b=inf r=0
a=0x0.0p+0 b=-inf r=1
a=0x0.0p+0 b=nan r=0
a=0x0.0p+0 b=0x1.8000000000000p+1 r=0
a=-0x0.0p+0 b=0x0.0p+0 r=0
a=-0x0.0p+0 b=-0x0.0p+0 r=0
a=-0x0.0p+0 b=0x1.0000000000000p+0 r=0
a=-0x0.0p+0 b=-0x1.0000000000000p+0 r=1
a=-0x0.0p+0 b=0x1.8000000000000p+0 r=0
a=-0x0.0p+0 b=inf r=0
a=-0x0.0p+0 b=-inf r=1
a=-0x0.0p+0 b=nan r=0
a=-0x0.0p+0 b=0x1.8000000000000p+1 r=0
a=0x1.0000000000000p+0 b=0x0.0p+0 r=1
a=0x1.0000000000000p+0 b=-0x0.0p+0 r=1
a=0x1.0000000000000p+0 b=0x1.0000000000000p+0 r=0
a=0x1.0000000000000p+0 b=-0x1.0000000000000p+0 r=1
a=0x1.0000000000000p+0 b=0x1.8000000000000p+0 r=0
a=0x1.0000000000000p+0 b=inf r=0
a=0x1.0000000000000p+0 b=-inf r=1
a=0x1.0000000000000p+0 b=nan r=0
a=0x1.0000000000000p+0 b=0x1.8000000000000p+1 r=0
a=-0x1.0000000000000p+0 b=0x0.0p+0 r=0
a=-0x1.0000000000000p+0 b=-0x0.0p+0 r=0
a=-0x1.0000000000000p+0 b=0x1.0000000000000p+0 r=0
a=-0x1.0000000000000p+0 b=-0x1.0000000000000p+0 r=0
a=-0x1.0000000000000p+0 b=0x1.8000000000000p+0 r=0
a=-0x1.0000000000000p+0 b=inf r=0
a=-0x1.0000000000000p+0 b=-inf r=1
a=-0x1.0000000000000p+0 b=nan r=0
a=-0x1.0000000000000p+0 b=0x1.8000000000000p+1 r=0
a=0x1.8000000000000p+0 b=0x0.0p+0 r=1
a=0x1.8000000000000p+0 b=-0x0.0p+0 r=1
a=0x1.8000000000000p+0 b=0x1.0000000000000p+0 r=1
a=0x1.8000000000000p+0 b=-0x1.0000000000000p+0 r=1
a=0x1.8000000000000p+0 b=0x1.8000000000000p+0 r=0
a=0x1.8000000000000p+0 b=inf r=0
a=0x1.8000000000000p+0 b=-inf r=1
a=0x1.8000000000000p+0 b=nan r=0
a=0x1.8000000000000p+0 b=0x1.8000000000000p+1 r=0
a=inf b=0x0.0p+0 r=1
a=inf b=-0x0.0p+0 r=1
a=inf b=0x1.0000000000000p+0 r=1
a=inf b=-0x1.0000000000000p+0 r=1
a=inf b=0x1.8000000000000p+0 r=1
a=inf b=inf r=0
a=inf b=-inf r=1
a=inf b=nan r=0
a=inf b=0x1.8000000000000p+1 r=1
a=-inf b=0x0.0p+0 r=0
a=-inf b=-0x0.0p+0 r=0
a=-inf b=0x1.0000000000000p+0 r=0
a=-inf b=-0x1.0000000000000p+0 r=0
a=-inf b=0x1.8000000000000p+0 r=0
a=-inf b=inf r=0
a=-inf b=-inf r=0
a=-inf b=nan r=0
a=-inf b=0x1.8000000000000p+1 r=0
a=nan b=0x0.0p+0 r=0
a=nan b=-0x0.0p+0 r=0
a=nan b=0x1.0000000000000p+0 r=0
a=nan b=-0x1.0000000000000p+0 r=0
a=nan b=0x1.8000000000000p+0 r=0
a=nan b=inf r=0
a=nan b=-inf r=0
a=nan b=nan r=0
a=nan b=0x1.8000000000000p+1 r=0
a=0x1.8000000000000p+1 b=0x0.0p+0 r=1
a=0x1.8000000000000p+1 b=-0x0.0p+0 r=1
a=0x1.8000000000000p+1 b=0x1.0000000000000p+0 r=1
a=0x1.8000000000000p+1 b=-0x1.0000000000000p+0 r=1
a=0x1.8000000000000p+1 b=0x1.8000000000000p+0 r=1
a=0x1.8000000000000p+1 b=inf r=0
a=0x1.8000000000000p+1 b=-inf r=1
a=0x1.8000000000000p+1 b=nan r=0
a=0x1.8000000000000p+1 b=0x1.8000000000000p+1 r=0

# ordered and unordered
-- insn setp.ge.f32 r, a, b;
-- regs a:f32 b:f32 -> r:pred
a=0x0.0p+0 b=0x0.0p+0 r=1
a=0x0.0p+0 b=-0x0.0p+0 r=1
a=0x0.0p+0 b=0x1.0000000000000p+0 r=0
a=0x0.0p+0 b=-0x1.0000000000000p+0 r=1
a=0x0.0p+0 b=0x1.8000000000000p+0 r=0
a=0x0.0p+0 b=inf r=0
a=0x0.0p+0 b=-inf r=1
a=0x0.0p+0 b=nan r=0
a=0x0.0p+0 b=0x1.8000000000000p+1 r=0
a=-0x0.0p+0 b=0x0.0p+0 r=1
a=-0x0.0p+0 b=-0x0.0p+0 r=1
a=-0x0.0p+0 b=0x1.0000000000000p+0 r=0
a=-0x0.0p+0 b=-0x1.0000000000000p+0 r=1
a=-0x0.0p+0 b=0x1.8000000000000p+0 r=0
a=-0x0.0p+0 b=inf r=0
a=-0x0.0p+0 b=-inf r=1
a=-0x0.0p+0 b=nan r=0
a=-0x0.0p+0 b=0x1.8000000000000p+1 r=0
a=0x1.0000000000000p+0 b=0x0.0p+0 r=1
a=0x1.0000000000000p+0 b=-0x0.0p+0 r=1
a=0x1.0000000000000p+0 b=0x1.0000000000000p+0 r=1
a=0x1.0000000000000p+0 b=-0x1.0000000000000p+0 r=1
a=0x1.0000000000000p+0 b=0x1.8000000000000p+0 r=0
a=0x1.0000000000000p+0 b=inf r=0
a=0x1.0000000000000p+0 b=-inf r=1
a=0x1.0000000000000p+0 b=nan r=0
a=0x1.0000000000000p+0 b=0x1.8000000000000p+1 r=0
a=-0x1.0000000000000p+0 b=0x0.0p+0 r=0
a=-0x1.0000000000000p+0 b=-0x0.0p+0 r=0
a=-0x1.0000000000000p+0 b=0x1.0000000000000p+0 r=0
a=-0x1.0000000000000p+0 b=-0x1.0000000000000p+0 r=1
a=-0x1.0000000000000p+0 b=0x1.8000000000000p+0 r=0
a=-0x1.0000000000000p+0 b=inf r=0
a=-0x1.0000000000000p+0 b=-inf r=1
a=-0x1.0000000000000p+0 b=nan r=0
a=-0x1.0000000000000p+0 b=0x1.8000000000000p+1 r=0
a=0x1.8000000000000p+0 b=0x0.0p+0 r=1
a=0x1.8000000000000p+0 b=-0x0.0p+0 r=1
a=0x1.8000000000000p+0 b=0x1.0000000000000p+0 r=1
a=0x1.8000000000000p+0 b=-0x1.0000000000000p+0 r=1
a=0x1.8000000000000p+0 b=0x1.8000000000000p+0 r=1
a=0x1.8000000000000p+0 b=inf r=0
a=0x1.8000000000000p+0 b=-inf r=1
a=0x1.8000000000000p+0 b=nan r=0
a=0x1.8000000000000p+0 b=0x1.8000000000000p+1 r=0
a=inf b=0x0.0p+0 r=1
a=inf b=-0x0.0p+0 r=1
a=inf b=0x1.0000000000000p+0 r=1
a=inf b=-0x1.0000000000000p+0 r=1
a=inf b=0x1.8000000000000p+0 r=1
a=inf b=inf r=1
a=inf b=-inf r=1
a=inf b=nan r=0
a=inf b=0x1.8000000000000p+1 r=1
a=-inf b=0x0.0p+0 r=0
a=-inf b=-0x0.0p+0 r=0
a=-inf b=0x1.0000000000000p+0 r=0
a=-inf b=-0x1.0000000000000p+0 r=0
a=-inf b=0x1.8000000000000p+0 r=0
a=-inf b=inf r=0
a=-inf b=-inf r=1
a=-inf b=nan r=0
a=-inf b=0x1.8000000000000p+1 r=0
a=nan b=0x0.0p+0 r=0
a=nan b=-0x0.0p+0 r=0
a=nan b=0x1.0000000000000p+0 r=0
a=nan b=-0x1.0000000000000p+0 r=0
a=nan b=0x1.8000000000000p+0 r=0
a=nan b=inf r=0
a=nan b=-inf r=0
a=nan b=nan r=0
a=nan b=0x1.8000000000000p+1 r=0
a=0x1.8000000000000p+1 b=0x0.0p+0 r=1
a=0x1.8000000000000p+1 b=-0x0.0p+0 r=1
a=0x1.8000000000000p+1 b=0x1.0000000000000p+0 r=1
a=0x1.8000000000000p+1 b=-0x1.0000000000000p+0 r=1
a=0x1.8000000000000p+1 b=0x1.8000000000000p+0 r=1
a=0x1.8000000000000p+1 b=inf r=0
a=0x1.8000000000000p+1 b=-inf r=1
a=0x1.8000000000000p+1 b=nan r=0
a=0x1.8000000000000p+1 b=0x1.8000000000000p+1 r=1

# ordered and unordered
-- insn setp.ge.f64 r, a, b;
-- regs a:f64 b:f64 -> r:pred
a=0x0.0p+0 b=0x0.0p+0 r=1
a=0x0.0p+0 b=-0x0.0p+0 r=1
a=0x0.0p+0 b=0x1.0000000000000p+0 r=0
a=0x0.0p+0 b=-0x1.0000000000000p+0 r=1
a=0x0.0p+0 b=0x1.8000000000000p+0 r=0
a=0x0.0p+0 b=inf r=0
a=0x0.0p+0 b=-inf r=1
a=0x0.0p+0 b=nan r=0
a=0x0.0p+0 b=0x1.8000000000000p+1 r=0
a=-0x0.0p+0 b=0x0.0p+0 r=1
a=-0x0.0p+0 b=-0x0.0p+0 r=1
a=-0x0.0p+0 b=0x1.0000000000000p+0 r=0
a=-0x0.0p+0 b=-0x1.0000000000000p+0 r=1
a=-0x0.0p+0 b=0x1.8000000000000p+0 r=0
a=-0x0.0p+0 b=inf r=0
a=-0x0.0p+0 b=-inf r=1
a=-0x0.0p+0 b=nan r=0
a=-0x0.0p+0 b=0x1.8000000000000p+1 r=0
a=0x1.0000000000000p+0 b=0x0.0p+0 r=1
a=0x1.0000000000000p+0 b=-0x0.0p+0 r=1
a=0x1.0000000000000p+0 b=0x1.0000000000000p+0 r=1
a=0x1.0000000000000p+0 b=-0x1.0000000000000p+0 r=1
a=0x1.0000000000000p+0 b=0x1.8000000000000p+0 r=0
a=0x1.0000000000000p+0 b=inf r=0
a=0x1.0000000000000p+0 b=-inf r=1
a=0x1.0000000000000p+0 b=nan r=0
a=0x1.0000000000000p+0 b=0x1.8000000000000p+1 r=0
a=-0x1.0000000000000p+0 b=0x0.0p+0 r=0
a=-0x1.0000000000000p+0 b=-0x0.0p+0 r=0
a=-0x1.0000000000000p+0 b=0x1.0000000000000p+0 r=0
a=-0x1.0000000000000p+0 b=-0x1.0000000000000p+0 r=1
a=-0x1.0000000000000p+0 b=0x1.8000000000000p+0 r=0
a=-0x1.0000000000000p+0 b=inf r=0
a=-0x1.0000000000000p+0 b=-inf r=1
a=-0x1.0000000000000p+0 b=nan r=0
a=-0x1.0000000000000p+0 b=0x1.8000000000000p+1 r=0
a=0x1.8000000000000p+0 b=0x0.0p+0 r=1
a=0x1.8000000000000p+0 b=-0x0.0p+0 r=1
a=0x1.8000000000000p+0 b=0x1.0000000000000p+0 r=1
a=0x1.8000000000000p+0 b=-0x1.0000000000000p+0 r=1
a=0x1.8000000000000p+0 b=0x1.8000000000000p+0 r=1
a=0x1.8000000000000p+0 b=inf r=0
a=0x1.8000000000000p+0 b=-inf r=1
a=0x1.8000000000000p+0 b=nan r=0
a=0x1.8000000000000p+0 b=0x1.8000000000000p+1 r=0
a=inf b=0x0.0p+0 r=1
a=inf b=-0x0.0p+0 r=1
a=inf b=0x1.0000000000000p+0 r=1
a=inf b=-0x1.0000000000000p+0 r=1
a=inf b=0x1.8000000000000p+0 r=1
a=inf b=inf r=1
a=inf b=-inf r=1
a=inf b=nan r=0
a=inf b=0x1.8000000000000p+1 r=1
a=-inf b=0x0.0p+0 r=0
a=-inf b=-0x0.0p+0 r=0
a=-inf b=0x1.0000000000000p+0 r=0
a=-inf b=-0x1.0000000000000p+0 r=0
a=-inf b=0x1.8000000000000p+0 r=0
a=-inf b=inf r=0
a=-inf b=-inf r=1
a=-inf b=nan r=0
a=-inf b=0x1.8000000000000p+1 r=0
a=nan b=0x0.0p+0 r=0
a=nan b=-0x0.0p+0 r=0
a=nan b=0x1.0000000000000p+0 r=0
a=nan b=-0x1.0000000000000p+0 r=0
a=nan b=0x1.8000000000000p+0 r=0
a=nan b=inf r=0
a=nan b=-inf r=0
a=nan b=nan r=0
a=nan b=0x1.8000000000000p+1 r=0
a=0x1.8000000000000p+1 b=0x0.0p+0 r=1
a=0x1.8000000000000p+1 b=-0x0.0p+0 r=1
a=0x1.8000000000000p+1 b=0x1.0000000000000p+0 r=1
a=0x1.8000000000000p+1 b=-0x1.0000000000000p+0 r=1
a=0x1.8000000000000p+1 b=0x1.8000000000000p+0 r=1
a=0x1.8000000000000p+1 b=inf r=0
a=0x1.8000000000000p+1 b=-inf r=1
a=0x1.8000000000000p+1 b=nan r=0
a=0x1.8000000000000p+1 b=0x1.8000000000000p+1 r=1

# ordered and unordered
-- insn setp.equ.f32 r, a, b;
-- regs a:f32 b:f32 -> r:pred
a=0x0.0p+0 b=0x0.0p+0 r=1
a=0x0.0p+0 b=-0x0.0p+0 r=1
a=0x0.0p+0 b=0x1.0000000000000p+0 r=0
a=0x0.0p+0 b=-0x1.0000000000000p+0 r=0
a=0x0.0p+0 b=0x1.8000000000000p+0 r=0
a=0x0.0p+0 b=inf r=0
a=0x0.0p+0 b=-inf r=0
a=0x0.0p+0 b=nan r=1
a=0x0.0p+0 b=0x1.8000000000000p+1 r=0
a=-0x0.0p+0 b=0x0.0p+0 r=1
a=-0x0.0p+0 b=-0x0.0p+0 r=1
a=-0x0.0p+0 b=0x1.0000000000000p+0 r=0
a=-0x0.0p+0 b=-0x1.0000000000000p+0 r=0
a=-0x0.0p+0 b=0x1.8000000000000p+0 r=0
a=-0x0.0p+0 b=inf r=0
a=-0x0.0p+0 b=-inf r=0
a=-0x0.0p+0 b=nan r=1
a=-0x0.0p+0 b=0x1.8000000000000p+1 r=0
a=0x1.0000000000000p+0 b=0x0.0p+0 r=0
a=0x1.0000000000000p+0 b=-0x0.0p+0 r=0
a=0x1.0000000000000p+0 b=0x1.0000000000000p+0 r=1
a=0x1.0000000000000p+0 b=-0x1.0000000000000p+0 r=0
a=0x1.0000000000000p+0 b=0x1.8000000000000p+0 r=0
a=0x1.0000000000000p+0 b=inf r=0
a=0x1.0000000000000p+0 b=-inf r=0
a=0x1.0000000000000p+0 b=nan r=1
a=0x1.0000000000000p+0 b=0x1.8000000000000p+1 r=0
a=-0x1.0000000000000p+0 b=0x0.0p+0 r=0
a=-0x1.0000000000000p+0 b=-0x0.0p+0 r=0
a=-0x1.0000000000000p+0 b=0x1.0000000000000p+0 r=0
a=-0x1.0000000000000p+0 b=-0x1.0000000000000p+0 r=1
a=-0x1.0000000000000p+0 b=0x1.8000000000000p+0 r=0
a=-0x1.0000000000000p+0 b=inf r=0
a=-0x1.0000000000000p+0 b=-inf r=0
a=-0x1.0000000000000p+0 b=nan r=1
a=-0x1.0000000000000p+0 b=0x1.8000000000000p+1 r=0
a=0x1.8000000000000p+0 b=0x0.0p+0 r=0
a=0x1.8000000000000p+0 b=-0x0.0p+0 r=0
a=0x1.8000000000000p+0 b=0x1.0000000000000p+0 r=0
a=0x1.8000000000000p+0 b=-0x1.0000000000000p+0 r=0
a=0x1.8000000000000p+0 b=0x1.8000000000000p+0 r=1
a=0x1.8000000000000p+0 b=inf r=0
a=0x1.8000000000000p+0 b=-inf r=0
a=0x1.8000000000000p+0 b=nan r=1
a=0x1.8000000000000p+0 b=0x1.8000000000000p+1 r=0
a=inf b=0x0.0p+0 r=0
a=inf b=-0x0.0p+0 r=0
a=inf b=0x1.0000000000000p+0 r=0
a=inf b=-0x1.0000000000000p+0 r=0
a=inf b=0x1.8000000000000p+0 r=0
a=inf b=inf r=1
a=inf b=-inf r=0
a=inf b=nan r=1
a=inf b=0x1.8000000000000p+1 r=0
a=-inf b=0x0.0p+0 r=0
a=-inf b=-0x0.0p+0 r=0
a=-inf b=0x1.0000000000000p+0 r=0
a=-inf b=-0x1.0000000000000p+0 r=0
a=-inf b=0x1.8000000000000p+0 r=0
a=-inf b=inf r=0
a=-inf b=-inf r=1
a=-inf b=nan r=1
a=-inf b=0x1.8000000000000p+1 r=0
a=nan b=0x0.0p+0 r=1
a=nan b=-0x0.0p+0 r=1
a=nan b=0x1.0000000000000p+0 r=1
a=nan b=-0x1.0000000000000p+0 r=1
a=nan b=0x1.8000000000000p+0 r=1
a=nan b=inf r=1
a=nan b=-inf r=1
a=nan b=nan r=1
a=nan b=0x1.8000000000000p+1 r=1
a=0x1.8000000000000p+1 b=0x0.0p+0 r=0
a=0x1.8000000000000p+1 b=-0x0.0p+0 r=0
a=0x1.8000000000000p+1 b=0x1.0000000000000p+0 r=0
a=0x1.8000000000000p+1 b=-0x1.0000000000000p+0 r=0
a=0x1.8000000000000p+1 b=0x1.8000000000000p+0 r=0
a=0x1.8000000000000p+1 b=inf r=0
a=0x1.8000000000000p+1 b=-inf r=0
a=0x1.8000000000000p+1 b=nan r=1
a=0x1.8000000000000p+1 b=0x1.8000000000000p+1 r=1

# ordered and unordered
-- insn setp.equ.f64 r, a, b;
-- regs a:f64 b:f64 -> r:pred
a=0x0.0p+0 b=0x0.0p+0 r=1
a=0x0.0p+0 b=-0x0.0p+0 r=1
a=0x0.0p+0 b=0x1.0000000000000p+0 r=0
a=0x0.0p+0 b=-0x1.0000000000000p+0 r=0
a=0x0.0p+0 b=0x1.8000000000000p+0 r=0
a=0x0.0p+0 b=inf r=0
a=0x0.0p+0 b=-inf r=0
a=0x0.0p+0 b=nan r=1
a=0x0.0p+0 b=0x1.8000000000000p+1 r=0
a=-0x0.0p+0 b=0x0.0p+0 r=1
a=-0x0.0p+0 b=-0x0.0p+0 r=1
a=-0x0.0p+0 b=0x1.0000000000000p+0 r=0
a=-0x0.0p+0 b=-0x1.0000000000000p+0 r=0
a=-0x0.0p+0 b=0x1.8000000000000p+0 r=0
a=-0x0.0p+0 b=inf r=0
a=-0x0.0p+0 b=-inf r=0
a=-0x0.0p+0 b=nan r=1
a=-0x0.0p+0 b=0x1.8000000000000p+1 r=0
a=0x1.0000000000000p+0 b=0x0.0p+0 r=0
a=0x1.0000000000000p+0 b=-0x0.0p+0 r=0
a=0x1.0000000000000p+0 b=0x1.0000000000000p+0 r=1
a=0x1.0000000000000p+0 b=-0x1.0000000000000p+0 r=0
a=0x1.0000000000000p+0 b=0x1.8000000000000p+0 r=0
a=0x1.0000000000000p+0 b=inf r=0
a=0x1.0000000000000p+0 b=-inf r=0
a=0x1.0000000000000p+0 b=nan r=1
a=0x1.0000000000000p+0 b=0x1.8000000000000p+1 r=0
a=-0x1.0000000000000p+0 b=0x0.0p+0 r=0
a=-0x1.0000000000000p+0 b=-0x0.0p+0 r=0
a=-0x1.0000000000000p+0 b=0x1.0000000000000p+0 r=0
a=-0x1.0000000000000p+0 b=-0x1.0000000000000p+0 r=1
a=-0x1.0000000000000p+0 b=0x1.8000000000000p+0 r=0
a=-0x1.0000000000000p+0 b=inf r=0
a=-0x1.0000000000000p+0 b=-inf r=0
a=-0x1.0000000000000p+0 b=nan r=1
a=-0x1.0000000000000p+0 b=0x1.8000000000000p+1 r=0
a=0x1.8000000000000p+0 b=0x0.0p+0 r=0
a=0x1.8000000000000p+0 b=-0x0.0p+0 r=0
a=0x1.8000000000000p+0 b=0x1.0000000000000p+0 r=0
a=0x1.8000000000000p+0 b=-0x1.0000000000000p+0 r=0
a=0x1.8000000000000p+0 b=0x1.8000000000000p+0 r=1
a=0x1.8000000000000p+0 b=inf r=0
a=0x1.8000000000000p+0 b=-inf r=0
a=0x1.8000000000000p+0 b=nan r=1
a=0x1.8000000000000p+0 b=0x1.8000000000000p+1 r=0
a=inf b=0x0.0p+0 r=0
a=inf b=-0x0.0p+0 r=0
a=inf b=0x1.0000000000000p+0 r=0
a=inf b=-0x1.0000000000000p+0 r=0
a=inf b=0x1.8000000000000p+0 r=0
a=inf b=inf r=1
a=inf b=-inf r=0
a=inf b=nan r=1
a=inf b=0x1.8000000000000p+1 r=0
a=-inf b=0x0.0p+0 r=0
a=-inf b=-0x0.0p+0 r=0
a=-inf b=0x1.0000000000000p+0 r=0
a=-inf b=-0x1.0000000000000p+0 r=0
a=-inf b=0x1.8000000000000p+0 r=0
a=-inf b=inf r=0
a=-inf b=-inf r=1
a=-inf b=nan r=1
a=-inf b=0x1.8000000000000p+1 r=0
a=nan b=0x0.0p+0 r=1
a=nan b=-0x0.0p+0 r=1
a=nan b=0x1.0000000000000p+0 r=1
a=nan b=-0x1.0000000000000p+0 r=1
a=nan b=0x1.8000000000000p+0 r=1
a=nan b=inf r=1
a=nan b=-inf r=1
a=nan b=nan r=1
a=nan b=0x1.8000000000000p+1 r=1
a=0x1.8000000000000p+1 b=0x0.0p+0 r=0
a=0x1.8000000000000p+1 b=-0x0.0p+0 r=0
a=0x1.8000000000000p+1 b=0x1.0000000000000p+0 r=0
a=0x1.8000000000000p+1 b=-0x1.0000000000000p+0 r=0
a=0x1.8000000000000p+1 b=0x1.8000000000000p+0 r=0
a=0x1.8000000000000p+1 b=inf r=0
a=0x1.8000000000000p+1 b=-inf r=0
a=0x1.8000000000000p+1 b=nan r=1
a=0x1.8000000000000p+1 b=0x1.8000000000000p+1 r=1

# ordered and unordered
-- insn setp.neu.f32 r, a, b;
-- regs a:f32 b:f32 -> r:pred
a=0x0.0p+0 b=0x0.0p+0 r=0
a=0x0.0p+0 b=-0x0.0p+0 r=0
a=0x0.0p+0 b=0x1.0000000000000p+0 r=1
a=0x0.0p+0 b=-0x1.0000000000000p+0 r=1
a=0x0.0p+0 b=0x1.8000000000000p+0 r=1
a=0x0.0p+0 b=inf r=1
a=0x0.0p+0 b=-inf r=1
a=0x0.0p+0 b=nan r=1
a=0x0.0p+0 b=0x1.8000000000000p+1 r=1
a=-0x0.0p+0 b=0x0.0p+0 r=0
a=-0x0.0p+0 b=-0x0.0p+0 r=0
a=-0x0.0p+0 b=0x1.0000000000000p+0 r=1
a=-0x0.0p+0 b=-0x1.0000000000000p+0 r=1
a=-0x0.0p+0 b=0x1.8000000000000p+0 r=1
a=-0x0.0p+0 b=inf r=1
a=-0x0.0p+0 b=-inf r=1
a=-0x0.0p+0 b=nan r=1
a=-0x0.0p+0 b=0x1.8000000000000p+1 r=1
a=0x1.0000000000000p+0 b=0x0.0p+0 r=1
a=0x1.0000000000000p+0 b=-0x0.0p+0 r=1
a=0x1.0000000000000p+0 b=0x1.0000000000000p+0 r=0
a=0x1.0000000000000p+0 b=-0x1.0000000000000p+0 r=1
a=0x1.0000000000000p+0 b=0x1.8000000000000p+0 r=1
a=0x1.0000000000000p+0 b=inf r=1
a=0x1.0000000000000p+0 b=-inf r=1
a=0x1.0000000000000p+0 b=nan r=1
a=0x1.0000000000000p+0 b=0x1.8000000000000p+1 r=1
a=-0x1.0000000000000p+0 b=0x0.0p+0 r=1
a=-0x1.0000000000000p+0 b=-0x0.0p+0 r=1
a=-0x1.0000000000000p+0 b=0x1.0000000000000p+0 r=1
a=-0x1.0000000000000p+0 b=-0x1.0000000000000p+0 r=0
a=-0x1.0000000000000p+0 b=0x1.8000000000000p+0 r=1
a=-0x1.0000000000000p+0 b=inf r=1
a=-0x1.0000000000000p+0 b=-inf r=1
a=-0x1.0000000000000p+0 b=nan r=1
a=-0x1.0000000000000p+0 b=0x1.8000000000000p+1 r=1
a=0x1.8000000000000p+0 b=0x0.0p+0 r=1
a=0x1.8000000000000p+0 b=-0x0.0p+0 r=1
a=0x1.8000000000000p+0 b=0x1.0000000000000p+0 r=1
a=0x1.8000000000000p+0 b=-0x1.0000000000000p+0 r=1
a=0x1.8000000000000p+0 b=0x1.8000000000000p+0 r=0
a=0x1.8000000000000p+0 b=inf r=1
a=0x1.8000000000000p+0 b=-inf r=1
a=0x1.8000000000000p+0 b=nan r=1
a=0x1.8000000000000p+0 b=0x1.8000000000000p+1 r=1
a=inf b=0x0.0p+0 r=1
a=inf b=-0x0.0p+0 r=1
a=inf b=0x1.0000000000000p+0 r=1
a=inf b=-0x1.0000000000000p+0 r=1
a=inf b=0x1.8000000000000p+0 r=1
a=inf b=inf r=0
a=inf b=-inf r=1
a=inf b=nan r=1
a=inf b=0x1.8000000000000p+1 r=1
a=-inf b=0x0.0p+0 r=1
a=-inf b=-0x0.0p+0 r=1
a=-inf b=0x1.0000000000000p+0 r=1
a=-inf b=-0x1.0000000000000p+0 r=1
a=-inf b=0x1.8000000000000p+0 r=1
a=-inf b=inf r=1
a=-inf b=-inf r=0
a=-inf b=nan r=1
a=-inf b=0x1.8000000000000p+1 r=1
a=nan b=0x0.0p+0 r=1
a=nan b=-0x0.0p+0 r=1
a=nan b=0x1.0000000000000p+0 r=1
a=nan b=-0x1.0000000000000p+0 r=1
a=nan b=0x1.8000000000000p+0 r=1
a=nan b=inf r=1
a=nan b=-inf r=1
a=nan b=nan r=1
a=nan b=0x1.8000000000000p+1 r=1
a=0x1.8000000000000p+1 b=0x0.0p+0 r=1
a=0x1.8000000000000p+1 b=-0x0.0p+0 r=1
a=0x1.8000000000000p+1 b=0x1.0000000000000p+0 r=1
a=0x1.8000000000000p+1 b=-0x1.0000000000000p+0 r=1
a=0x1.8000000000000p+1 b=0x1.8000000000000p+0 r=1
a=0x1.8000000000000p+1 b=inf r=1
a=0x1.8000000000000p+1 b=-inf r=1
a=0x1.8000000000000p+1 b=nan r=1
a=0x1.8000000000000p+1 b=0x1.8000000000000p+1 r=0

# ordered and unordered
-- insn setp.neu.f64 r, a, b;
-- regs a:f64 b:f64 -> r:pred
a=0x0.0p+0 b=0x0.0p+0 r=0
a=0x0.0p+0 b=-0x0.0p+0 r=0
a=0x0.0p+0 b=0x1.0000000000000p+0 r=1
a=0x0.0p+0 b=-0x1.0000000000000p+0 r=1
a=0x0.0p+0 b=0x1.8000000000000p+0 r=1
a=0x0.0p+0 b=inf r=1
a=0x0.0p+0 b=-inf r=1
a=0x0.0p+0 b=nan r=1
a=0x0.0p+0 b=0x1.8000000000000p+1 r=1
a=-0x0.0p+0 b=0x0.0p+0 r=0
a=-0x0.0p+0 b=-0x0.0p+0 r=0
a=-0x0.0p+0 b=0x1.0000000000000p+0 r=1
a=-0x0.0p+0 b=-0x1.0000000000000p+0 r=1
a=-0x0.0p+0 b=0x1.8000000000000p+0 r=1
a=-0x0.0p+0 b=inf r=1
a=-0x0.0p+0 b=-inf r=1
a=-0x0.0p+0 b=nan r=1
a=-0x0.0p+0 b=0x1.8000000000000p+1 r=1
a=0x1.0000000000000p+0 b=0x0.0p+0 r=1
a=0x1.0000000000000p+0 b=-0x0.0p+0 r=1
a=0x1.0000000000000p+0 b=0x1.0000000000000p+0 r=0
a=0x1.0000000000000p+0 b=-0x1.0000000000000p+0 r=1
a=0x1.0000000000000p+0 b=0x1.8000000000000p+0 r=1
a=0x1.0000000000000p+0 b=inf r=1
a=0x1.0000000000000p+0 b=-inf r=1
a=0x1.0000000000000p+0 b=nan r=1
a=0x1.0000000000000p+0 b=0x1.8000000000000p+1 r=1
a=-0x1.0000000000000p+0 b=0x0.0p+0 r=1
a=-0x1.0000000000000p+0 b=-0x0.0p+0 r=1
a=-0x1.0000000000000p+0 b=0x1.0000000000000p+0 r=1
a=-0x1.0000000000000p+0 b=-0x1.0000000000000p+0 r=0
a=-0x1.0000000000000p+0 b=0x1.8000000000000p+0 r=1
a=-0x1.0000000000000p+0 b=inf r=1
a=-0x1.0000000000000p+0 b=-inf r=1
a=-0x1.0000000000000p+0 b=nan r=1
a=-0x1.0000000000000p+0 b=0x1.8000000000000p+1 r=1
a=0x1.8000000000000p+0 b=0x0.0p+0 r=1
a=0x1.8000000000000p+0 b=-0x0.0p+0 r=1
a=0x1.8000000000000p+0 b=0x1.0000000000000p+0 r=1
a=0x1.8000000000000p+0 b=-0x1.0000000000000p+0 r=1
a=0x1.8000000000000p+0 b=0x1.8000000000000p+0 r=0
a=0x1.8000000000000p+0 b=inf r=1
a=0x1.8000000000000p+0 b=-inf r=1
a=0x1.8000000000000p+0 b=nan r=1
a=0x1.8000000000000p+0 b=0x1.8000000000000p+1 r=1
a=inf b=0x0.0p+0 r=1
a=inf b=-0x0.0p+0 r=1
a=inf b=0x1.0000000000000p+0 r=1
a=inf b=-0x1.0000000000000p+0 r=1
a=inf b=0x1.8000000000000p+0 r=1
a=inf b=inf r=0
a=inf b=-inf r=1
a=inf b=nan r=1
a=inf b=0x1.8000000000000p+1 r=1
a=-inf b=0x0.0p+0 r=1
a=-inf b=-0x0.0p+0 r=1
a=-inf b=0x1.0000000000000p+0 r=1
a=-inf b=-0x1.0000000000000p+0 r=1
a=-inf b=0x1.8000000000000p+0 r=1
a=-inf b=inf r=1
a=-inf b=-inf r=0
a=-inf b=nan r=1
a=-inf b=0x1.8000000000000p+1 r=1
a=nan b=0x0.0p+0 r=1
a=nan b=-0x0.0p+0 r=1
a=nan b=0x1.0000000000000p+0 r=1
a=nan b=-0x1.0000000000000p+0 r=1
a=nan b=0x1.8000000000000p+0 r=1
a=nan b=inf r=1
a=nan b=-inf r=1
a=nan b=nan r=1
a=nan b=0x1.8000000000000p+1 r=1
a=0x1.8000000000000p+1 b=0x0.0p+0 r=1
a=0x1.8000000000000p+1 b=-0x0.0p+0 r=1
a=0x1.8000000000000p+1 b=0x1.0000000000000p+0 r=1
a=0x1.8000000000000p+1 b=-0x1.0000000000000p+0 r=1
a=0x1.8000000000000p+1 b=0x1.8000000000000p+0 r=1
a=0x1.8000000000000p+1 b=inf r=1
a=0x1.8000000000000p+1 b=-inf r=1
a=0x1.8000000000000p+1 b=nan r=1
a=0x1.8000000000000p+1 b=0x1.8000000000000p+1 r=0

# ordered and unordered
-- insn setp.ltu.f32 r, a, b;
-- regs a:f32 b:f32 -> r:pred
a=0x0.0p+0 b=0x0.0p+0 r=0
a=0x0.0p+0 b=-0x0.0p+0 r=0
a=0x0.0p+0 b=0x1.0000000000000p+0 r=1
a=0x0.0p+0 b=-0x1.0000000000000p+0 r=0
a=0x0.0p+0 b=0x1.8000000000000p+0 r=1
a=0x0.0p+0 b=inf r=1
a=0x0.0p+0 b=-inf r=0
a=0x0.0p+0 b=nan r=1
a=0x0.0p+0 b=0x1.8000000000000p+1 r=1
a=-0x0.0p+0 b=0x0.0p+0 r=0
a=-0x0.0p+0 b=-0x0.0p+0 r=0
a=-0x0.0p+0 b=0x1.0000000000000p+0 r=1
a=-0x0.0p+0 b=-0x1.0000000000000p+0 r=0
a=-0x0.0p+0 b=0x1.8000000000000p+0 r=1
a=-0x0.0p+0 b=inf r=1
a=-0x0.0p+0 b=-inf r=0
a=-0x0.0p+0 b=nan r=1
a=-0x0.0p+0 b=0x1.8000000000000p+1 r=1
a=0x1.0000000000000p+0 b=0x0.0p+0 r=0
a=0x1.0000000000000p+0 b=-0x0.0p+0 r=0
a=0x1.0000000000000p+0 b=0x1.0000000000000p+0 r=0
a=0x1.0000000000000p+0 b=-0x1.0000000000000p+0 r=0
a=0x1.0000000000000p+0 b=0x1.8000000000000p+0 r=1
a=0x1.0000000000000p+0 b=inf r=1
a=0x1.0000000000000p+0 b=-inf r=0
a=0x1.0000000000000p+0 b=nan r=1
a=0x1.0000000000000p+0 b=0x1.8000000000000p+1 r=1
a=-0x1.0000000000000p+0 b=0x0.0p+0 r=1
a=-0x1.0000000000000p+0 b=-0x0.0p+0 r=1
a=-0x1.0000000000000p+0 b=0x1.0000000000000p+0 r=1
a=-0x1.0000000000000p+0 b=-0x1.0000000000000p+0 r=0
a=-0x1.0000000000000p+0 b=0x1.8000000000000p+0 r=1
a=-0x1.0000000000000p+0 b=inf r=1
a=-0x1.0000000000000p+0 b=-inf r=0
a=-0x1.0000000000000p+0 b=nan r=1
a=-0x1.0000000000000p+0 b=0x1.8000000000000p+1 r=1
a=0x1.8000000000000p+0 b=0x0.0p+0 r=0
a=0x1.8000000000000p+0 b=-0x0.0p+0 r=0
a=0x1.8000000000000p+0 b=0x1.0000000000000p+0 r=0
a=0x1.8000000000000p+0 b=-0x1.0000000000000p+0 r=0
a=0x1.8000000000000p+0 b=0x1.8000000000000p+0 r=0
a=0x1.8000000000000p+0 b=inf r=1
a=0x1.8000000000000p+0 b=-inf r=0
a=0x1.8000000000000p+0 b=nan r=1
a=0x1.8000000000000p+0 b=0x1.8000000000000p+1 r=1
a=inf b=0x0.0p+0 r=0
a=inf b=-0x0.0p+0 r=0
a=inf b=0x1.0000000000000p+0 r=0
a=inf b=-0x1.0000000000000p+0 r=0
a=inf b=0x1.8000000000000p+0 r=0
a=inf b=inf r=0
a=inf b=-inf r=0
a=inf b=nan r=1
a=inf b=0x1.8000000000000p+1 r=0
a=-inf b=0x0.0p+0 r=1
a=-inf b=-0x0.0p+0 r=1
a=-inf b=0x1.0000000000000p+0 r=1
a=-inf b=-0x1.0000000000000p+0 r=1
a=-inf b=0x1.8000000000000p+0 r=1
a=-inf b=inf r=1
a=-inf b=-inf r=0
a=-inf b=nan r=1
a=-inf b=0x1.8000000000000p+1 r=1
a=nan b=0x0.0p+0 r=1
a=nan b=-0x0.0p+0 r=1
a=nan b=0x1.0000000000000p+0 r=1
a=nan b=-0x1.0000000000000p+0 r=1
a=nan b=0x1.8000000000000p+0 r=1
a=nan b=inf r=1
a=nan b=-inf r=1
a=nan b=nan r=1
a=nan b=0x1.8000000000000p+1 r=1
a=0x1.8000000000000p+1 b=0x0.0p+0 r=0
a=0x1.8000000000000p+1 b=-0x0.0p+0 r=0
a=0x1.8000000000000p+1 b=0x1.0000000000000p+0 r=0
a=0x1.8000000000000p+1 b=-0x1.0000000000000p+0 r=0
a=0x1.8000000000000p+1 b=0x1.8000000000000p+0 r=0
a=0x1.8000000000000p+1 b=inf r=1
a=0x1.8000000000000p+1 b=-inf r=0
a=0x1.8000000000000p+1 b=nan r=1
a=0x1.8000000000000p+1 b=0x1.8000000000000p+1 r=0

# ordered and unordered
-- insn setp.ltu.f64 r, a, b;
-- regs a:f64 b:f64 -> r:pred
a=0x0.0p+0 b=0x0.0p+0 r=0
a=0x0.0p+0 b=-0x0.0p+0 r=0
a=0x0.0p+0 b=0x1.0000000000000p+0 r=1
a=0x0.0p+0 b=-0x1.0000000000000p+0 r=0
a=0x0.0p+0 b=0x1.8000000000000p+0 r=1
a=0x0.0p+0 b=inf r=1
a=0x0.0p+0 b=-inf r=0
a=0x0.0p+0 b=nan r=1
a=0x0.0p+0 b=0x1.8000000000000p+1 r=1
a=-0x0.0p+0 b=0x0.0p+0 r=0
a=-0x0.0p+0 b=-0x0.0p+0 r=0
a=-0x0.0p+0 b=0x1.0000000000000p+0 r=1
a=-0x0.0p+0 b=-0x1.0000000000000p+0 r=0
a=-0x0.0p+0 b=0x1.8000000000000p+0 r=1
a=-0x0.0p+0 b=inf r=1
a=-0x0.0p+0 b=-inf r=0
a=-0x0.0p+0 b=nan r=1
a=-0x0.0p+0 b=0x1.8000000000000p+1 r=1
a=0x1.0000000000000p+0 b=0x0.0p+0 r=0
a=0x1.0000000000000p+0 b=-0x0.0p+0 r=0
a=0x1.0000000000000p+0 b=0x1.0000000000000p+0 r=0
a=0x1.0000000000000p+0 b=-0x1.0000000000000p+0 r=0
a=0x1.0000000000000p+0 b=0x1.8000000000000p+0 r=1
a=0x1.0000000000000p+0 b=inf r=1
a=0x1.0000000000000p+0 b=-inf r=0
a=0x1.0000000000000p+0 b=nan r=1
a=0x1.0000000000000p+0 b=0x1.8000000000000p+1 r=1
a=-0x1.0000000000000p+0 b=0x0.0p+0 r=1
a=-0x1.0000000000000p+0 b=-0x0.0p+0 r=1
a=-0x1.0000000000000p+0 b=0x1.0000000000000p+0 r=1
a=-0x1.0000000000000p+0 b=-0x1.0000000000000p+0 r=0
a=-0x1.0000000000000p+0 b=0x1.8000000000000p+0 r=1
a=-0x1.0000000000000p+0 b=inf r=1
a=-0x1.0000000000000p+0 b=-inf r=0
a=-0x1.0000000000000p+0 b=nan r=1
a=-0x1.0000000000000p+0 b=0x1.8000000000000p+1 r=1
a=0x1.8000000000000p+0 b=0x0.0p+0 r=0
a=0x1.8000000000000p+0 b=-0x0.0p+0 r=0
a=0x1.8000000000000p+0 b=0x1.0000000000000p+0 r=0
a=0x1.8000000000000p+0 b=-0x1.0000000000000p+0 r=0
a=0x1.8000000000000p+0 b=0x1.8000000000000p+0 r=0
a=0x1.8000000000000p+0 b=inf r=1
a=0x1.8000000000000p+0 b=-inf r=0
a=0x1.8000000000000p+0 b=nan r=1
a=0x1.8000000000000p+0 b=0x1.8000000000000p+1 r=1
a=inf b=0x0.0p+0 r=0
a=inf b=-0x0.0p+0 r=0
a=inf b=0x1.0000000000000p+0 r=0
a=inf b=-0x1.0000000000000p+0 r=0
a=inf b=0x1.8000000000000p+0 r=0
a=inf b=inf r=0
a=inf b=-inf r=0
a=inf b=nan r=1
a=inf b=0x1.8000000000000p+1 r=0
a=-inf b=0x0.0p+0 r=1
a=-inf b=-0x0.0p+0 r=1
a=-inf b=0x1.0000000000000p+0 r=1
a=-inf b=-0x1.0000000000000p+0 r=1
a=-inf b=0x1.8000000000000p+0 r=1
a=-inf b=inf r=1
a=-inf b=-inf r=0
a=-inf b=nan r=1
a=-inf b=0x1.8000000000000p+1 r=1
a=nan b=0x0.0p+0 r=1
a=nan b=-0x0.0p+0 r=1
a=nan b=0x1.0000000000000p+0 r=1
a=nan b=-0x1.0000000000000p+0 r=1
a=nan b=0x1.8000000000000p+0 r=1
a=nan b=inf r=1
a=nan b=-inf r=1
a=nan b=nan r=1
a=nan b=0x1.8000000000000p+1 r=1
a=0x1.8000000000000p+1 b=0x0.0p+0 r=0
a=0x1.8000000000000p+1 b=-0x0.0p+0 r=0
a=0x1.8000000000000p+1 b=0x1.0000000000000p+0 r=0
a=0x1.8000000000000p+1 b=-0x1.0000000000000p+0 r=0
a=0x1.8000000000000p+1 b=0x1.8000000000000p+0 r=0
a=0x1.8000000000000p+1 b=inf r=1
a=0x1.8000000000000p+1 b=-inf r=0
a=0x1.8000000000000p+1 b=nan r=1
a=0x1.8000000000000p+1 b=0x1.8000000000000p+1 r=0

# ordered and unordered
-- insn setp.leu.f32 r, a, b;
-- regs a:f32 b:f32 -> r:pred
a=0x0.0p+0 b=0x0.0p+0 r=1
a=0x0.0p+0 b=-0x0.0p+0 r=1
a=0x0.0p+0 b=0x1.0000000000000p+0 r=1
a=0x0.0p+0 b=-0x1.0000000000000p+0 r=0
a=0x0.0p+0 b=0x1.8000000000000p+0 r=1
a=0x0.0p+0 b=inf r=1
a=0x0.0p+0 b=-inf r=0
a=0x0.0p+0 b=nan r=1
a=0x0.0p+0 b=0x1.8000000000000p+1 r=1
a=-0x0.0p+0 b=0x0.0p+0 r=1
a=-0x0.0p+0 b=-0x0.0p+0 r=1
a=-0x0.0p+0 b=0x1.0000000000000p+0 r=1
a=-0x0.0p+0 b=-0x1.0000000000000p+0 r=0
a=-0x0.0p+0 b=0x1.8000000000000p+0 r=1
a=-0x0.0p+0 b=inf r=1
a=-0x0.0p+0 b=-inf r=0
a=-0x0.0p+0 b=nan r=1
a=-0x0.0p+0 b=0x1.8000000000000p+1 r=1
a=0x1.0000000000000p+0 b=0x0.0p+0 r=0
a=0x1.0000000000000p+0 b=-0x0.0p+0 r=0
a=0x1.0000000000000p+0 b=0x1.0000000000000p+0 r=1
a=0x1.0000000000000p+0 b=-0x1.0000000000000p+0 r=0
a=0x1.0000000000000p+0 b=0x1.8000000000000p+0 r=1
a=0x1.0000000000000p+0 b=inf r=1
a=0x1.0000000000000p+0 b=-inf r=0
a=0x1.0000000000000p+0 b=nan r=1
a=0x1.0000000000000p+0 b=0x1.8000000000000p+1 r=1
a=-0x1.0000000000000p+0 b=0x0.0p+0 r=1
a=-0x1.0000000000000p+0 b=-0x0.0p+0 r=1
a=-0x1.0000000000000p+0 b=0x1.0000000000000p+0 r=1
a=-0x1.0000000000000p+0 b=-0x1.0000000000000p+0 r=1
a=-0x1.0000000000000p+0 b=0x1.8000000000000p+0 r=1
a=-0x1.0000000000000p+0 b=inf r=1
a=-0x1.0000000000000p+0 b=-inf r=0
a=-0x1.0000000000000p+0 b=nan r=1
a=-0x1.0000000000000p+0 b=0x1.8000000000000p+1 r=1
a=0x1.8000000000000p+0 b=0x0.0p+0 r=0
a=0x1.8000000000000p+0 b=-0x0.0p+0 r=0
a=0x1.8000000000000p+0 b=0x1.0000000000000p+0 r=0
a=0x1.8000000000000p+0 b=-0x1.0000000000000p+0 r=0
a=0x1.8000000000000p+0 b=0x1.8000000000000p+0 r=1
a=0x1.8000000000000p+0 b=inf r=1
a=0x1.8000000000000p+0 b=-inf r=0
a=0x1.8000000000000p+0 b=nan r=1
a=0x1.8000000000000p+0 b=0x1.8000000000000p+1 r=1
a=inf b=0x0.0p+0 r=0
a=inf b=-0x0.0p+0 r=0
a=inf b=0x1.0000000000000p+0 r=0
a=inf b=-0x1.0000000000000p+0 r=0
a=inf b=0x1.8000000000000p+0 r=0
a=inf b=inf r=1
a=inf b=-inf r=0
a=inf b=nan r=1
a=inf b=0x1.8000000000000p+1 r=0
a=-inf b=0x0.0p+0 r=1
a=-inf b=-0x0.0p+0 r=1
a=-inf b=0x1.0000000000000p+0 r=1
a=-inf b=-0x1.0000000000000p+0 r=1
a=-inf b=0x1.8000000000000p+0 r=1
a=-inf b=inf r=1
a=-inf b=-inf r=1
a=-inf b=nan r=1
a=-inf b=0x1.8000000000000p+1 r=1
a=nan b=0x0.0p+0 r=1
a=nan b=-0x0.0p+0 r=1
a=nan b=0x1.0000000000000p+0 r=1
a=nan b=-0x1.0000000000000p+0 r=1
a=nan b=0x1.8000000000000p+0 r=1
a=nan b=inf r=1
a=nan b=-inf r=1
a=nan b=nan r=1
a=nan b=0x1.8000000000000p+1 r=1
a=0x1.8000000000000p+1 b=0x0.0p+0 r=0
a=0x1.8000000000000p+1 b=-0x0.0p+0 r=0
a=0x1.8000000000000p+1 b=0x1.0000000000000p+0 r=0
a=0x1.8000000000000p+1 b=-0x1.0000000000000p+0 r=0
a=0x1.8000000000000p+1 b=0x1.8000000000000p+0 r=0
a=0x1.8000000000000p+1 b=inf r=1
a=0x1.8000000000000p+1 b=-inf r=0
a=0x1.8000000000000p+1 b=nan r=1
a=0x1.8000000000000p+1 b=0x1.8000000000000p+1 r=1

# ordered and unordered
-- insn setp.leu.f64 r, a, b;
-- regs a:f64 b:f64 -> r:pred
a=0x0.0p+0 b=0x0.0p+0 r=1
a=0x0.0p+0 b=-0x0.0p+0 r=1
a=0x0.0p+0 b=0x1.0000000000000p+0 r=1
a=0x0.0p+0 b=-0x1.0000000000000p+0 r=0
a=0x0.0p+0 b=0x1.8000000000000p+0 r=1
a=0x0.0p+0 b=inf r=1
a=0x0.0p+0 b=-inf r=0
a=0x0.0p+0 b=nan r=1
a=0x0.0p+0 b=0x1.8000000000000p+1 r=1
a=-0x0.0p+0 b=0x0.0p+0 r=1
a=-0x0.0p+0 b=-0x0.0p+0 r=1
a=-0x0.0p+0 b=0x1.0000000000000p+0 r=1
a=-0x0.0p+0 b=-0x1.0000000000000p+0 r=0
a=-0x0.0p+0 b=0x1.8000000000000p+0 r=1
a=-0x0.0p+0 b=inf r=1
a=-0x0.0p+0 b=-inf r=0
a=-0x0.0p+0 b=nan r=1
a=-0x0.0p+0 b=0x1.8000000000000p+1 r=1
a=0x1.0000000000000p+0 b=0x0.0p+0 r=0
a=0x1.0000000000000p+0 b=-0x0.0p+0 r=0
a=0x1.0000000000000p+0 b=0x1.0000000000000p+0 r=1
a=0x1.0000000000000p+0 b=-0x1.0000000000000p+0 r=0
a=0x1.0000000000000p+0 b=0x1.8000000000000p+0 r=1
a=0x1.0000000000000p+0 b=inf r=1
a=0x1.0000000000000p+0 b=-inf r=0
a=0x1.0000000000000p+0 b=nan r=1
a=0x1.0000000000000p+0 b=0x1.8000000000000p+1 r=1
a=-0x1.0000000000000p+0 b=0x0.0p+0 r=1
a=-0x1.0000000000000p+0 b=-0x0.0p+0 r=1
a=-0x1.0000000000000p+0 b=0x1.0000000000000p+0 r=1
a=-0x1.0000000000000p+0 b=-0x1.0000000000000p+0 r=1
a=-0x1.0000000000000p+0 b=0x1.8000000000000p+0 r=1
a=-0x1.0000000000000p+0 b=inf r=1
a=-0x1.0000000000000p+0 b=-inf r=0
a=-0x1.0000000000000p+0 b=nan r=1
a=-0x1.0000000000000p+0 b=0x1.8000000000000p+1 r=1
a=0x1.8000000000000p+0 b=0x0.0p+0 r=0
a=0x1.8000000000000p+0 b=-0x0.0p+0 r=0
a=0x1.8000000000000p+0 b=0x1.0000000000000p+0 r=0
a=0x1.8000000000000p+0 b=-0x1.0000000000000p+0 r=0
a=0x1.8000000000000p+0 b=0x1.8000000000000p+0 r=1
a=0x1.8000000000000p+0 b=inf r=1
a=0x1.8000000000000p+0 b=-inf r=0
a=0x1.8000000000000p+0 b=nan r=1
a=0x1.8000000000000p+0 b=0x1.8000000000000p+1 r=1
a=inf b=0x0.0p+0 r=0
a=inf b=-0x0.0p+0 r=0
a=inf b=0x1.0000000000000p+0 r=0
a=inf b=-0x1.0000000000000p+0 r=0
a=inf b=0x1.8000000000000p+0 r=0
a=inf b=inf r=1
a=inf b=-inf r=0
a=inf b=nan r=1
a=inf b=0x1.8000000000000p+1 r=0
a=-inf b=0x0.0p+0 r=1
a=-inf b=-0x0.0p+0 r=1
a=-inf b=0x1.0000000000000p+0 r=1
a=-inf b=-0x1.0000000000000p+0 r=1
a=-inf b=0x1.8000000000000p+0 r=1
a=-inf b=inf r=1
a=-inf b=-inf r=1
a=-inf b=nan r=1
a=-inf b=0x1.8000000000000p+1 r=1
a=nan b=0x0.0p+0 r=1
a=nan b=-0x0.0p+0 r=1
a=nan b=0x1.0000000000000p+0 r=1
a=nan b=-0x1.0000000000000p+0 r=1
a=nan b=0x1.8000000000000p+0 r=1
a=nan b=inf r=1
a=nan b=-inf r=1
a=nan b=nan r=1
a=nan b=0x1.8000000000000p+1 r=1
a=0x1.8000000000000p+1 b=0x0.0p+0 r=0
a=0x1.8000000000000p+1 b=-0x0.0p+0 r=0
a=0x1.8000000000000p+1 b=0x1.0000000000000p+0 r=0
a=0x1.8000000000000p+1 b=-0x1.0000000000000p+0 r=0
a=0x1.8000000000000p+1 b=0x1.8000000000000p+0 r=0
a=0x1.8000000000000p+1 b=inf r=1
a=0x1.8000000000000p+1 b=-inf r=0
a=0x1.8000000000000p+1 b=nan r=1
a=0x1.8000000000000p+1 b=0x1.8000000000000p+1 r=1

# ordered and unordered
-- insn setp.gtu.f32 r, a, b;
-- regs a:f32 b:f32 -> r:pred
a=0x0.0p+0 b=0x0.0p+0 r=0
a=0x0.0p+0 b=-0x0.0p+0 r=0
a=0x0.0p+0 b=0x1.0000000000000p+0 r=0
a=0x0.0p+0 b=-0x1.0000000000000p+0 r=1
a=0x0.0p+0 b=0x1.8000000000000p+0 r=0
a=0x0.0p+0 b=inf r=0
a=0x0.0p+0 b=-inf r=1
a=0x0.0p+0 b=nan r=1
a=0x0.0p+0 b=0x1.8000000000000p+1 r=0
a=-0x0.0p+0 b=0x0.0p+0 r=0
a=-0x0.0p+0 b=-0x0.0p+0 r=0
a=-0x0.0p+0 b=0x1.0000000000000p+0 r=0
a=-0x0.0p+0 b=-0x1.0000000000000p+0 r=1
a=-0x0.0p+0 b=0x1.8000000000000p+0 r=0
a=-0x0.0p+0 b=inf r=0
a=-0x0.0p+0 b=-inf r=1
a=-0x0.0p+0 b=nan r=1
a=-0x0.0p+0 b=0x1.8000000000000p+1 r=0
a=0x1.0000000000000p+0 b=0x0.0p+0 r=1
a=0x1.0000000000000p+0 b=-0x0.0p+0 r=1
a=0x1.0000000000000p+0 b=0x1.0000000000000p+0 r=0
a=0x1.0000000000000p+0 b=-0x1.0000000000000p+0 r=1
a=0x1.0000000000000p+0 b=0x1.8000000000000p+0 r=0
a=0x1.0000000000000p+0 b=inf r=0
a=0x1.0000000000000p+0 b=-inf r=1
a=0x1.0000000000000p+0 b=nan r=1
a=0x1.0000000000000p+0 b=0x1.8000000000000p+1 r=0
a=-0x1.0000000000000p+0 b=0x0.0p+0 r=0
a=-0x1.0000000000000p+0 b=-0x0.0p+0 r=0
a=-0x1.0000000000000p+0 b=0x1.0000000000000p+0 r=0
a=-0x1.0000000000000p+0 b=-0x1.0000000000000p+0 r=0
a=-0x1.0000000000000p+0 b=0x1.8000000000000p+0 r=0
a=-0x1.0000000000000p+0 b=inf r=0
a=-0x1.0000000000000p+0 b=-inf r=1
a=-0x1.0000000000000p+0 b=nan r=1
a=-0x1.0000000000000p+0 b=0x1.8000000000000p+1 r=0
a=0x1.8000000000000p+0 b=0x0.0p+0 r=1
a=0x1.8000000000000p+0 b=-0x0.0p+0 r=1
a=0x1.8000000000000p+0 b=0x1.0000000000000p+0 r=1
a=0x1.8000000000000p+0 b=-0x1.0000000000000p+0 r=1
a=0x1.8000000000000p+0 b=0x1.8000000000000p+0 r=0
a=0x1.8000000000000p+0 b=inf r=0
a=0x1.8000000000000p+0 b=-inf r=1
a=0x1.8000000000000p+0 b=nan r=1
a=0x1.8000000000000p+0 b=0x1.8000000000000p+1 r=0
a=inf b=0x0.0p+0 r=1
a=inf b=-0x0.0p+0 r=1
a=inf b=0x1.0000000000000p+0 r=1
a=inf b=-0x1.0000000000000p+0 r=1
a=inf b=0x1.8000000000000p+0 r=1
a=inf b=inf r=0
a=inf b=-inf r=1
a=inf b=nan r=1
a=inf b=0x1.8000000000000p+1 r=1
a=-inf b=0x0.0p+0 r=0
a=-inf b=-0x0.0p+0 r=0
a=-inf b=0x1.0000000000000p+0 r=0
a=-inf b=-0x1.0000000000000p+0 r=0
a=-inf b=0x1.8000000000000p+0 r=0
a=-inf b=inf r=0
a=-inf b=-inf r=0
a=-inf b=nan r=1
a=-inf b=0x1.8000000000000p+1 r=0
a=nan b=0x0.0p+0 r=1
a=nan b=-0x0.0p+0 r=1
a=nan b=0x1.0000000000000p+0 r=1
a=nan b=-0x1.0000000000000p+0 r=1
a=nan b=0x1.8000000000000p+0 r=1
a=nan b=inf r=1
a=nan b=-inf r=1
a=nan b=nan r=1
a=nan b=0x1.8000000000000p+1 r=1
a=0x1.8000000000000p+1 b=0x0.0p+0 r=1
a=0x1.8000000000000p+1 b=-0x0.0p+0 r=1
a=0x1.8000000000000p+1 b=0x1.0000000000000p+0 r=1
a=0x1.8000000000000p+1 b=-0x1.0000000000000p+0 r=1
a=0x1.8000000000000p+1 b=0x1.8000000000000p+0 r=1
a=0x1.8000000000000p+1 b=inf r=0
a=0x1.8000000000000p+1 b=-inf r=1
a=0x1.8000000000000p+1 b=nan r=1
a=0x1.8000000000000p+1 b=0x1.8000000000000p+1 r=0

# ordered and unordered
-- insn setp.gtu.f64 r, a, b;
-- regs a:f64 b:f64 -> r:pred
a=0x0.0p+0 b=0x0.0p+0 r=0
a=0x0.0p+0 b=-0x0.0p+0 r=0
a=0x0.0p+0 b=0x1.0000000000000p+0 r=0
a=0x0.0p+0 b=-0x1.0000000000000p+0 r=1
a=0x0.0p+0 b=0x1.8000000000000p+0 r=0
a=0x0.0p+0 b=inf r=0
a=0x0.0p+0 b=-inf r=1
a=0x0.0p+0 b=nan r=1
a=0x0.0p+0 b=0x1.8000000000000p+1 r=0
a=-0x0.0p+0 b=0x0.0p+0 r=0
a=-0x0.0p+0 b=-0x0.0p+0 r=0
a=-0x0.0p+0 b=0x1.0000000000000p+0 r=0
a=-0x0.0p+0 b=-0x1.0000000000000p+0 r=1
a=-0x0.0p+0 b=0x1.8000000000000p+0 r=0
a=-0x0.0p+0 b=inf r=0
a=-0x0.0p+0 b=-inf r=1
a=-0x0.0p+0 b=nan r=1
a=-0x0.0p+0 b=0x1.8000000000000p+1 r=0
a=0x1.0000000000000p+0 b=0x0.0p+0 r=1
a=0x1.0000000000000p+0 b=-0x0.0p+0 r=1
a=0x1.0000000000000p+0 b=0x1.0000000000000p+0 r=0
a=0x1.0000000000000p+0 b=-0x1.0000000000000p+0 r=1
a=0x1.0000000000000p+0 b=0x1.8000000000000p+0 r=0
a=0x1.0000000000000p+0 b=inf r=0
a=0x1.0000000000000p+0 b=-inf r=1
a=0x1.0000000000000p+0 b=nan r=1
a=0x1.0000000000000p+0 b=0x1.8000000000000p+1 r=0
a=-0x1.0000000000000p+0 b=0x0.0p+0 r=0
a=-0x1.0000000000000p+0 b=-0x0.0p+0 r=0
a=-0x1.0000000000000p+0 b=0x1.0000000000000p+0 r=0
a=-0x1.0000000000000p+0 b=-0x1.0000000000000p+0 r=0
a=-0x1.0000000000000p+0 b=0x1.8000000000000p+0 r=0
a=-0x1.0000000000000p+0 b=inf r=0
a=-0x1.0000000000000p+0 b=-inf r=1
a=-0x1.0000000000000p+0 b=nan r=1
a=-0x1.0000000000000p+0 b=0x1.8000000000000p+1 r=0
a=0x1.8000000000000p+0 b=0x0.0p+0 r=1
a=0x1.8000000000000p+0 b=-0x0.0p+0 r=1
a=0x1.8000000000000p+0 b=0x1.0000000000000p+0 r=1
a=0x1.8000000000000p+0 b=-0x1.0000000000000p+0 r=1
a=0x1.8000000000000p+0 b=0x1.8000000000000p+0 r=0
a=0x1.8000000000000p+0 b=inf r=0
a=0x1.8000000000000p+0 b=-inf r=1
a=0x1.8000000000000p+0 b=nan r=1
a=0x1.8000000000000p+0 b=0x1.8000000000000p+1 r=0
a=inf b=0x0.0p+0 r=1
a=inf b=-0x0.0p+0 r=1
a=inf b=0x1.0000000000000p+0 r=1
a=inf b=-0x1.0000000000000p+0 r=1
a=inf b=0x1.8000000000000p+0 r=1
a=inf b=inf r=0
a=inf b=-inf r=1
a=inf b=nan r=1
a=inf b=0x1.8000000000000p+1 r=1
a=-inf b=0x0.0p+0 r=0
a=-inf b=-0x0.0p+0 r=0
a=-inf b=0x1.0000000000000p+0 r=0
a=-inf b=-0x1.0000000000000p+0 r=0
a=-inf b=0x1.8000000000000p+0 r=0
a=-inf b=inf r=0
a=-inf b=-inf r=0
a=-inf b=nan r=1
a=-inf b=0x1.8000000000000p+1 r=0
a=nan b=0x0.0p+0 r=1
a=nan b=-0x0.0p+0 r=1
a=nan b=0x1.0000000000000p+0 r=1
a=nan b=-0x1.0000000000000p+0 r=1
a=nan b=0x1.8000000000000p+0 r=1
a=nan b=inf r=1
a=nan b=-inf r=1
a=nan b=nan r=1
a=nan b=0x1.8000000000000p+1 r=1
a=0x1.8000000000000p+1 b=0x0.0p+0 r=1
a=0x1.8000000000000p+1 b=-0x0.0p+0 r=1
a=0x1.8000000000000p+1 b=0x1.0000000000000p+0 r=1
a=0x1.8000000000000p+1 b=-0x1.0000000000000p+0 r=1
a=0x1.8000000000000p+1 b=0x1.8000000000000p+0 r=1
a=0x1.8000000000000p+1 b=inf r=0
a=0x1.8000000000000p+1 b=-inf r=1
a=0x1.8000000000000p+1 b=nan r=1
a=0x1.8000000000000p+1 b=0x1.8000000000000p+1 r=0

# ordered and unordered
-- insn setp.geu.f32 r, a, b;
-- regs a:f32 b:f32 -> r:pred
a=0x0.0p+0 b=0x0.0p+0 r=1
a=0x0.0p+0 b=-0x0.0p+0 r=1
a=0x0.0p+0 b=0x1.0000000000000p+0 r=0
a=0x0.0p+0 b=-0x1.0000000000000p+0 r=1
a=0x0.0p+0 b=0x1.8000000000000p+0 r=0
a=0x0.0p+0 b=inf r=0
a=0x0.0p+0 b=-inf r=1
a=0x0.0p+0 b=nan r=1
a=0x0.0p+0 b=0x1.8000000000000p+1 r=0
a=-0x0.0p+0 b=0x0.0p+0 r=1
a=-0x0.0p+0 b=-0x0.0p+0 r=1
a=-0x0.0p+0 b=0x1.0000000000000p+0 r=0
a=-0x0.0p+0 b=-0x1.0000000000000p+0 r=1
a=-0x0.0p+0 b=0x1.8000000000000p+0 r=0
a=-0x0.0p+0 b=inf r=0
a=-0x0.0p+0 b=-inf r=1
a=-0x0.0p+0 b=nan r=1
a=-0x0.0p+0 b=0x1.8000000000000p+1 r=0
a=0x1.0000000000000p+0 b=0x0.0p+0 r=1
a=0x1.0000000000000p+0 b=-0x0.0p+0 r=1
a=0x1.0000000000000p+0 b=0x1.0000000000000p+0 r=1
a=0x1.0000000000000p+0 b=-0x1.0000000000000p+0 r=1
a=0x1.0000000000000p+0 b=0x1.8000000000000p+0 r=0
a=0x1.0000000000000p+0 b=inf r=0
a=0x1.0000000000000p+0 b=-inf r=1
a=0x1.0000000000000p+0 b=nan r=1
a=0x1.0000000000000p+0 b=0x1.8000000000000p+1 r=0
a=-0x1.0000000000000p+0 b=0x0.0p+0 r=0
a=-0x1.0000000000000p+0 b=-0x0.0p+0 r=0
a=-0x1.0000000000000p+0 b=0x1.0000000000000p+0 r=0
a=-0x1.0000000000000p+0 b=-0x1.0000000000000p+0 r=1
a=-0x1.0000000000000p+0 b=0x1.8000000000000p+0 r=0
a=-0x1.0000000000000p+0 b=inf r=0
a=-0x1.0000000000000p+0 b=-inf r=1
a=-0x1.0000000000000p+0 b=nan r=1
a=-0x1.0000000000000p+0 b=0x1.8000000000000p+1 r=0
a=0x1.8000000000000p+0 b=0x0.0p+0 r=1
a=0x1.8000000000000p+0 b=-0x0.0p+0 r=1
a=0x1.8000000000000p+0 b=0x1.0000000000000p+0 r=1
a=0x1.8000000000000p+0 b=-0x1.0000000000000p+0 r=1
a=0x1.8000000000000p+0 b=0x1.8000000000000p+0 r=1
a=0x1.8000000000000p+0 b=inf r=0
a=0x1.8000000000000p+0 b=-inf r=1
a=0x1.8000000000000p+0 b=nan r=1
a=0x1.8000000000000p+0 b=0x1.8000000000000p+1 r=0
a=inf b=0x0.0p+0 r=1
a=inf b=-0x0.0p+0 r=1
a=inf b=0x1.0000000000000p+0 r=1
a=inf b=-0x1.0000000000000p+0 r=1
a=inf b=0x1.8000000000000p+0 r=1
a=inf b=inf r=1
a=inf b=-inf r=1
a=inf b=nan r=1
a=inf b=0x1.8000000000000p+1 r=1
a=-inf b=0x0.0p+0 r=0
a=-inf b=-0x0.0p+0 r=0
a=-inf b=0x1.0000000000000p+0 r=0
a=-inf b=-0x1.0000000000000p+0 r=0
a=-inf b=0x1.8000000000000p+0 r=0
a=-inf b=inf r=0
a=-inf b=-inf r=1
a=-inf b=nan r=1
a=-inf b=0x1.8000000000000p+1 r=0
a=nan b=0x0.0p+0 r=1
a=nan b=-0x0.0p+0 r=1
a=nan b=0x1.0000000000000p+0 r=1
a=nan b=-0x1.0000000000000p+0 r=1
a=nan b=0x1.8000000000000p+0 r=1
a=nan b=inf r=1
a=nan b=-inf r=1
a=nan b=nan r=1
a=nan b=0x1.8000000000000p+1 r=1
a=0x1.8000000000000p+1 b=0x0.0p+0 r=1
a=0x1.8000000000000p+1 b=-0x0.0p+0 r=1
a=0x1.8000000000000p+1 b=0x1.0000000000000p+0 r=1
a=0x1.8000000000000p+1 b=-0x1.0000000000000p+0 r=1
a=0x1.8000000000000p+1 b=0x1.8000000000000p+0 r=1
a=0x1.8000000000000p+1 b=inf r=0
a=0x1.8000000000000p+1 b=-inf r=1
a=0x1.8000000000000p+1 b=nan r=1
a=0x1.8000000000000p+1 b=0x1.8000000000000p+1 r=1

# ordered and unordered
-- insn setp.geu.f64 r, a, b;
-- regs a:f64 b:f64 -> r:pred
a=0x0.0p+0 b=0x0.0p+0 r=1
a=0x0.0p+0 b=-0x0.0p+0 r=1
a=0x0.0p+0 b=0x1.0000000000000p+0 r=0
a=0x0.0p+0 b=-0x1.0000000000000p+0 r=1
a=0x0.0p+0 b=0x1.8000000000000p+0 r=0
a=0x0.0p+0 b=inf r=0
a=0x0.0p+0 b=-inf r=1
a=0x0.0p+0 b=nan r=1
a=0x0.0p+0 b=0x1.8000000000000p+1 r=0
a=-0x0.0p+0 b=0x0.0p+0 r=1
a=-0x0.0p+0 b=-0x0.0p+0 r=1
a=-0x0.0p+0 b=0x1.0000000000000p+0 r=0
a=-0x0.0p+0 b=-0x1.0000000000000p+0 r=1
a=-0x0.0p+0 b=0x1.8000000000000p+0 r=0
a=-0x0.0p+0 b=inf r=0
a=-0x0.0p+0 b=-inf r=1
a=-0x0.0p+0 b=nan r=1
a=-0x0.0p+0 b=0x1.8000000000000p+1 r=0
a=0x1.0000000000000p+0 b=0x0.0p+0 r=1
a=0x1.0000000000000p+0 b=-0x0.0p+0 r=1
a=0x1.0000000000000p+0 b=0x1.0000000000000p+0 r=1
a=0x1.0000000000000p+0 b=-0x1.0000000000000p+0 r=1
a=0x1.0000000000000p+0 b=0x1.8000000000000p+0 r=0
a=0x1.0000000000000p+0 b=inf r=0
a=0x1.0000000000000p+0 b=-inf r=1
a=0x1.0000000000000p+0 b=nan r=1
a=0x1.0000000000000p+0 b=0x1.8000000000000p+1 r=0
a=-0x1.0000000000000p+0 b=0x0.0p+0 r=0
a=-0x1.0000000000000p+0 b=-0x0.0p+0 r=0
a=-0x1.0000000000000p+0 b=0x1.0000000000000p+0 r=0
a=-0x1.0000000000000p+0 b=-0x1.0000000000000p+0 r=1
a=-0x1.0000000000000p+0 b=0x1.8000000000000p+0 r=0
a=-0x1.0000000000000p+0 b=inf r=0
a=-0x1.0000000000000p+0 b=-inf r=1
a=-0x1.0000000000000p+0 b=nan r=1
a=-0x1.0000000000000p+0 b=0x1.8000000000000p+1 r=0
a=0x1.8000000000000p+0 b=0x0.0p+0 r=1
a=0x1.8000000000000p+0 b=-0x0.0p+0 r=1
a=0x1.8000000000000p+0 b=0x1.0000000000000p+0 r=1
a=0x1.8000000000000p+0 b=-0x1.0000000000000p+0 r=1
a=0x1.8000000000000p+0 b=0x1.8000000000000p+0 r=1
a=0x1.8000000000000p+0 b=inf r=0
a=0x1.8000000000000p+0 b=-inf r=1
a=0x1.8000000000000p+0 b=nan r=1
a=0x1.8000000000000p+0 b=0x1.8000000000000p+1 r=0
a=inf b=0x0.0p+0 r=1
a=inf b=-0x0.0p+0 r=1
a=inf b=0x1.0000000000000p+0 r=1
a=inf b=-0x1.0000000000000p+0 r=1
a=inf b=0x1.8000000000000p+0 r=1
a=inf b=inf r=1
a=inf b=-inf r=1
a=inf b=nan r=1
a=inf b=0x1.8000000000000p+1 r=1
a=-inf b=0x0.0p+0 r=0
a=-inf b=-0x0.0p+0 r=0
a=-inf b=0x1.0000000000000p+0 r=0
a=-inf b=-0x1.0000000000000p+0 r=0
a=-inf b=0x1.8000000000000p+0 r=0
a=-inf b=inf r=0
a=-inf b=-inf r=1
a=-inf b=nan r=1
a=-inf b=0x1.8000000000000p+1 r=0
a=nan b=0x0.0p+0 r=1
a=nan b=-0x0.0p+0 r=1
a=nan b=0x1.0000000000000p+0 r=1
a=nan b=-0x1.0000000000000p+0 r=1
a=nan b=0x1.8000000000000p+0 r=1
a=nan b=inf r=1
a=nan b=-inf r=1
a=nan b=nan r=1
a=nan b=0x1.8000000000000p+1 r=1
a=0x1.8000000000000p+1 b=0x0.0p+0 r=1
a=0x1.8000000000000p+1 b=-0x0.0p+0 r=1
a=0x1.8000000000000p+1 b=0x1.0000000000000p+0 r=1
a=0x1.8000000000000p+1 b=-0x1.0000000000000p+0 r=1
a=0x1.8000000000000p+1 b=0x1.8000000000000p+0 r=1
a=0x1.8000000000000p+1 b=inf r=0
a=0x1.8000000000000p+1 b=-inf r=1
a=0x1.8000000000000p+1 b=nan r=1
a=0x1.8000000000000p+1 b=0x1.8000000000000p+1 r=1

# ordered and unordered
-- insn setp.num.f32 r, a, b;
-- regs a:f32 b:f32 -> r:pred
a=0x0.0p+0 b=0x0.0p+0 r=1
a=0x0.0p+0 b=-0x0.0p+0 r=1
a=0x0.0p+0 b=0x1.0000000000000p+0 r=1
a=0x0.0p+0 b=-0x1.0000000000000p+0 r=1
a=0x0.0p+0 b=0x1.8000000000000p+0 r=1
a=0x0.0p+0 b=inf r=1
a=0x0.0p+0 b=-inf r=1
a=0x0.0p+0 b=nan r=0
a=0x0.0p+0 b=0x1.8000000000000p+1 r=1
a=-0x0.0p+0 b=0x0.0p+0 r=1
a=-0x0.0p+0 b=-0x0.0p+0 r=1
a=-0x0.0p+0 b=0x1.0000000000000p+0 r=1
a=-0x0.0p+0 b=-0x1.0000000000000p+0 r=1
a=-0x0.0p+0 b=0x1.8000000000000p+0 r=1
a=-0x0.0p+0 b=inf r=1
a=-0x0.0p+0 b=-inf r=1
a=-0x0.0p+0 b=nan r=0
a=-0x0.0p+0 b=0x1.8000000000000p+1 r=1
a=0x1.0000000000000p+0 b=0x0.0p+0 r=1
a=0x1.0000000000000p+0 b=-0x0.0p+0 r=1
a=0x1.0000000000000p+0 b=0x1.0000000000000p+0 r=1
a=0x1.0000000000000p+0 b=-0x1.0000000000000p+0 r=1
a=0x1.0000000000000p+0 b=0x1.8000000000000p+0 r=1
a=0x1.0000000000000p+0 b=inf r=1
a=0x1.0000000000000p+0 b=-inf r=1
a=0x1.0000000000000p+0 b=nan r=0
a=0x1.0000000000000p+0 b=0x1.8000000000000p+1 r=1
a=-0x1.0000000000000p+0 b=0x0.0p+0 r=1
a=-0x1.0000000000000p+0 b=-0x0.0p+0 r=1
a=-0x1.0000000000000p+0 b=0x1.0000000000000p+0 r=1
a=-0x1.0000000000000p+0 b=-0x1.0000000000000p+0 r=1
a=-0x1.0000000000000p+0 b=0x1.8000000000000p+0 r=1
a=-0x1.0000000000000p+0 b=inf r=1
a=-0x1.0000000000000p+0 b=-inf r=1
a=-0x1.0000000000000p+0 b=nan r=0
a=-0x1.0000000000000p+0 b=0x1.8000000000000p+1 r=1
a=0x1.8000000000000p+0 b=0x0.0p+0 r=1
a=0x1.8000000000000p+0 b=-0x0.0p+0 r=1
a=0x1.8000000000000p+0 b=0x1.0000000000000p+0 r=1
a=0x1.8000000000000p+0 b=-0x1.0000000000000p+0 r=1
a=0x1.8000000000000p+0 b=0x1.8000000000000p+0 r=1
a=0x1.8000000000000p+0 b=inf r=1
a=0x1.8000000000000p+0 b=-inf r=1
a=0x1.8000000000000p+0 b=nan r=0
a=0x1.8000000000000p+0 b=0x1.8000000000000p+1 r=1
a=inf b=0x0.0p+0 r=1
a=inf b=-0x0.0p+0 r=1
a=inf b=0x1.0000000000000p+0 r=1
a=inf b=-0x1.0000000000000p+0 r=1
a=inf b=0x1.8000000000000p+0 r=1
a=inf b=inf r=1
a=inf b=-inf r=1
a=inf b=nan r=0
a=inf b=0x1.8000000000000p+1 r=1
a=-inf b=0x0.0p+0 r=1
a=-inf b=-0x0.0p+0 r=1
a=-inf b=0x1.0000000000000p+0 r=1
a=-inf b=-0x1.0000000000000p+0 r=1
a=-inf b=0x1.8000000000000p+0 r=1
a=-inf b=inf r=1
a=-inf b=-inf r=1
a=-inf b=nan r=0
a=-inf b=0x1.8000000000000p+1 r=1
a=nan b=0x0.0p+0 r=0
a=nan b=-0x0.0p+0 r=0
a=nan b=0x1.0000000000000p+0 r=0
a=nan b=-0x1.0000000000000p+0 r=0
a=nan b=0x1.8000000000000p+0 r=0
a=nan b=inf r=0
a=nan b=-inf r=0
a=nan b=nan r=0
a=nan b=0x1.8000000000000p+1 r=0
a=0x1.8000000000000p+1 b=0x0.0p+0 r=1
a=0x1.8000000000000p+1 b=-0x0.0p+0 r=1
a=0x1.8000000000000p+1 b=0x1.0000000000000p+0 r=1
a=0x1.8000000000000p+1 b=-0x1.0000000000000p+0 r=1
a=0x1.8000000000000p+1 b=0x1.8000000000000p+0 r=1
a=0x1.8000000000000p+1 b=inf r=1
a=0x1.8000000000000p+1 b=-inf r=1
a=0x1.8000000000000p+1 b=nan r=0
a=0x1.8000000000000p+1 b=0x1.8000000000000p+1 r=1

# ordered and unordered
-- insn setp.num.f64 r, a, b;
-- regs a:f64 b:f64 -> r:pred
a=0x0.0p+0 b=0x0.0p+0 r=1
a=0x0.0p+0 b=-0x0.0p+0 r=1
a=0x0.0p+0 b=0x1.0000000000000p+0 r=1
a=0x0.0p+0 b=-0x1.0000000000000p+0 r=1
a=0x0.0p+0 b=0x1.8000000000000p+0 r=1
a=0x0.0p+0 b=inf r=1
a=0x0.0p+0 b=-inf r=1
a=0x0.0p+0 b=nan r=0
a=0x0.0p+0 b=0x1.8000000000000p+1 r=1
a=-0x0.0p+0 b=0x0.0p+0 r=1
a=-0x0.0p+0 b=-0x0.0p+0 r=1
a=-0x0.0p+0 b=0x1.0000000000000p+0 r=1
a=-0x0.0p+0 b=-0x1.0000000000000p+0 r=1
a=-0x0.0p+0 b=0x1.8000000000000p+0 r=1
a=-0x0.0p+0 b=inf r=1
a=-0x0.0p+0 b=-inf r=1
a=-0x0.0p+0 b=nan r=0
a=-0x0.0p+0 b=0x1.8000000000000p+1 r=1
a=0x1.0000000000000p+0 b=0x0.0p+0 r=1
a=0x1.0000000000000p+0 b=-0x0.0p+0 r=1
a=0x1.0000000000000p+0 b=0x1.0000000000000p+0 r=1
a=0x1.0000000000000p+0 b=-0x1.0000000000000p+0 r=1
a=0x1.0000000000000p+0 b=0x1.8000000000000p+0 r=1
a=0x1.0000000000000p+0 b=inf r=1
a=0x1.0000000000000p+0 b=-inf r=1
a=0x1.0000000000000p+0 b=nan r=0
a=0x1.0000000000000p+0 b=0x1.8000000000000p+1 r=1
a=-0x1.0000000000000p+0 b=0x0.0p+0 r=1
a=-0x1.0000000000000p+0 b=-0x0.0p+0 r=1
a=-0x1.0000000000000p+0 b=0x1.0000000000000p+0 r=1
a=-0x1.0000000000000p+0 b=-0x1.0000000000000p+0 r=1
a=-0x1.0000000000000p+0 b=0x1.8000000000000p+0 r=1
a=-0x1.0000000000000p+0 b=inf r=1
a=-0x1.0000000000000p+0 b=-inf r=1
a=-0x1.0000000000000p+0 b=nan r=0
a=-0x1.0000000000000p+0 b=0x1.8000000000000p+1 r=1
a=0x1.8000000000000p+0 b=0x0.0p+0 r=1
a=0x1.8000000000000p+0 b=-0x0.0p+0 r=1
a=0x1.8000000000000p+0 b=0x1.0000000000000p+0 r=1
a=0x1.8000000000000p+0 b=-0x1.0000000000000p+0 r=1
a=0x1.8000000000000p+0 b=0x1.8000000000000p+0 r=1
a=0x1.8000000000000p+0 b=inf r=1
a=0x1.8000000000000p+0 b=-inf r=1
a=0x1.8000000000000p+0 b=nan r=0
a=0x1.8000000000000p+0 b=0x1.8000000000000p+1 r=1
a=inf b=0x0.0p+0 r=1
a=inf b=-0x0.0p+0 r=1
a=inf b=0x1.0000000000000p+0 r=1
a=inf b=-0x1.0000000000000p+0 r=1
a=inf b=0x1.8000000000000p+0 r=1
a=inf b=inf r=1
a=inf b=-inf r=1
a=inf b=nan r=0
a=inf b=0x1.8000000000000p+1 r=1
a=-inf b=0x0.0p+0 r=1
a=-inf b=-0x0.0p+0 r=1
a=-inf b=0x1.0000000000000p+0 r=1
a=-inf b=-0x1.0000000000000p+0 r=1
a=-inf b=0x1.8000000000000p+0 r=1
a=-inf b=inf r=1
a=-inf b=-inf r=1
a=-inf b=nan r=0
a=-inf b=0x1.8000000000000p+1 r=1
a=nan b=0x0.0p+0 r=0
a=nan b=-0x0.0p+0 r=0
a=nan b=0x1.0000000000000p+0 r=0
a=nan b=-0x1.0000000000000p+0 r=0
a=nan b=0x1.8000000000000p+0 r=0
a=nan b=inf r=0
a=nan b=-inf r=0
a=nan b=nan r=0
a=nan b=0x1.8000000000000p+1 r=0
a=0x1.8000000000000p+1 b=0x0.0p+0 r=1
a=0x1.8000000000000p+1 b=-0x0.0p+0 r=1
a=0x1.8000000000000p+1 b=0x1.0000000000000p+0 r=1
a=0x1.8000000000000p+1 b=-0x1.0000000000000p+0 r=1
a=0x1.8000000000000p+1 b=0x1.8000000000000p+0 r=1
a=0x1.8000000000000p+1 b=inf r=1
a=0x1.8000000000000p+1 b=-inf r=1
a=0x1.8000000000000p+1 b=nan r=0
a=0x1.8000000000000p+1 b=0x1.8000000000000p+1 r=1

# ordered and unordered
-- insn setp.nan.f32 r, a, b;
-- regs a:f32 b:f32 -> r:pred
a=0x0.0p+0 b=0x0.0p+0 r=0
a=0x0.0p+0 b=-0x0.0p+0 r=0
a=0x0.0p+0 b=0x1.0000000000000p+0 r=0
a=0x0.0p+0 b=-0x1.0000000000000p+0 r=0
a=0x0.0p+0 b=0x1.8000000000000p+0 r=0
a=0x0.0p+0 b=inf r=0
a=0x0.0p+0 b=-inf r=0
a=0x0.0p+0 b=nan r=1
a=0x0.0p+0 b=0x1.8000000000000p+1 r=0
a=-0x0.0p+0 b=0x0.0p+0 r=0
a=-0x0.0p+0 b=-0x0.0p+0 r=0
a=-0x0.0p+0 b=0x1.0000000000000p+0 r=0
a=-0x0.0p+0 b=-0x1.0000000000000p+0 r=0
a=-0x0.0p+0 b=0x1.8000000000000p+0 r=0
a=-0x0.0p+0 b=inf r=0
a=-0x0.0p+0 b=-inf r=0
a=-0x0.0p+0 b=nan r=1
a=-0x0.0p+0 b=0x1.8000000000000p+1 r=0
a=0x1.0000000000000p+0 b=0x0.0p+0 r=0
a=0x1.0000000000000p+0 b=-0x0.0p+0 r=0
a=0x1.0000000000000p+0 b=0x1.0000000000000p+0 r=0
a=0x1.0000000000000p+0 b=-0x1.0000000000000p+0 r=0
a=0x1.0000000000000p+0 b=0x1.8000000000000p+0 r=0
a=0x1.0000000000000p+0 b=inf r=0
a=0x1.0000000000000p+0 b=-inf r=0
a=0x1.0000000000000p+0 b=nan r=1
a=0x1.0000000000000p+0 b=0x1.8000000000000p+1 r=0
a=-0x1.0000000000000p+0 b=0x0.0p+0 r=0
a=-0x1.0000000000000p+0 b=-0x0.0p+0 r=0
a=-0x1.0000000000000p+0 b=0x1.0000000000000p+0 r=0
a=-0x1.0000000000000p+0 b=-0x1.0000000000000p+0 r=0
a=-0x1.0000000000000p+0 b=0x1.8000000000000p+0 r=0
a=-0x1.0000000000000p+0 b=inf r=0
a=-0x1.0000000000000p+0 b=-inf r=0
a=-0x1.0000000000000p+0 b=nan r=1
a=-0x1.0000000000000p+0 b=0x1.8000000000000p+1 r=0
a=0x1.8000000000000p+0 b=0x0.0p+0 r=0
a=0x1.8000000000000p+0 b=-0x0.0p+0 r=0
a=0x1.8000000000000p+0 b=0x1.0000000000000p+0 r=0
a=0x1.8000000000000p+0 b=-0x1.0000000000000p+0 r=0
a=0x1.8000000000000p+0 b=0x1.8000000000000p+0 r=0
a=0x1.8000000000000p+0 b=inf r=0
a=0x1.8000000000000p+0 b=-inf r=0
a=0x1.8000000000000p+0 b=nan r=1
a=0x1.8000000000000p+0 b=0x1.8000000000000p+1 r=0
a=inf b=0x0.0p+0 r=0
a=inf b=-0x0.0p+0 r=0
a=inf b=0x1.0000000000000p+0 r=0
a=inf b=-0x1.0000000000000p+0 r=0
a=inf b=0x1.8000000000000p+0 r=0
a=inf b=inf r=0
a=inf b=-inf r=0
a=inf b=nan r=1
a=inf b=0x1.8000000000000p+1 r=0
a=-inf b=0x0.0p+0 r=0
a=-inf b=-0x0.0p+0 r=0
a=-inf b=0x1.0000000000000p+0 r=0
a=-inf b=-0x1.0000000000000p+0 r=0
a=-inf b=0x1.8000000000000p+0 r=0
a=-inf b=inf r=0
a=-inf b=-inf r=0
a=-inf b=nan r=1
a=-inf b=0x1.8000000000000p+1 r=0
a=nan b=0x0.0p+0 r=1
a=nan b=-0x0.0p+0 r=1
a=nan b=0x1.0000000000000p+0 r=1
a=nan b=-0x1.0000000000000p+0 r=1
a=nan b=0x1.8000000000000p+0 r=1
a=nan b=inf r=1
a=nan b=-inf r=1
a=nan b=nan r=1
a=nan b=0x1.8000000000000p+1 r=1
a=0x1.8000000000000p+1 b=0x0.0p+0 r=0
a=0x1.8000000000000p+1 b=-0x0.0p+0 r=0
a=0x1.8000000000000p+1 b=0x1.0000000000000p+0 r=0
a=0x1.8000000000000p+1 b=-0x1.0000000000000p+0 r=0
a=0x1.8000000000000p+1 b=0x1.8000000000000p+0 r=0
a=0x1.8000000000000p+1 b=inf r=0
a=0x1.8000000000000p+1 b=-inf r=0
a=0x1.8000000000000p+1 b=nan r=1
a=0x1.8000000000000p+1 b=0x1.8000000000000p+1 r=0

# ordered and unordered
-- insn setp.nan.f64 r, a, b;
-- regs a:f64 b:f64 -> r:pred
a=0x0.0p+0 b=0x0.0p+0 r=0
a=0x0.0p+0 b=-0x0.0p+0 r=0
a=0x0.0p+0 b=0x1.0000000000000p+0 r=0
a=0x0.0p+0 b=-0x1.0000000000000p+0 r=0
a=0x0.0p+0 b=0x1.8000000000000p+0 r=0
a=0x0.0p+0 b=inf r=0
a=0x0.0p+0 b=-inf r=0
a=0x0.0p+0 b=nan r=1
a=0x0.0p+0 b=0x1.8000000000000p+1 r=0
a=-0x0.0p+0 b=0x0.0p+0 r=0
a=-0x0.0p+0 b=-0x0.0p+0 r=0
a=-0x0.0p+0 b=0x1.0000000000000p+0 r=0
a=-0x0.0p+0 b=-0x1.0000000000000p+0 r=0
a=-0x0.0p+0 b=0x1.8000000000000p+0 r=0
a=-0x0.0p+0 b=inf r=0
a=-0x0.0p+0 b=-inf r=0
a=-0x0.0p+0 b=nan r=1
a=-0x0.0p+0 b=0x1.8000000000000p+1 r=0
a=0x1.0000000000000p+0 b=0x0.0p+0 r=0
a=0x1.0000000000000p+0 b=-0x0.0p+0 r=0
a=0x1.0000000000000p+0 b=0x1.0000000000000p+0 r=0
a=0x1.0000000000000p+0 b=-0x1.0000000000000p+0 r=0
a=0x1.0000000000000p+0 b=0x1.8000000000000p+0 r=0
a=0x1.0000000000000p+0 b=inf r=0
a=0x1.0000000000000p+0 b=-inf r=0
a=0x1.0000000000000p+0 b=nan r=1
a=0x1.0000000000000p+0 b=0x1.8000000000000p+1 r=0
a=-0x1.0000000000000p+0 b=0x0.0p+0 r=0
a=-0x1.0000000000000p+0 b=-0x0.0p+0 r=0
a=-0x1.0000000000000p+0 b=0x1.0000000000000p+0 r=0
a=-0x1.0000000000000p+0 b=-0x1.0000000000000p+0 r=0
a=-0x1.0000000000000p+0 b=0x1.8000000000000p+0 r=0
a=-0x1.0000000000000p+0 b=inf r=0
a=-0x1.0000000000000p+0 b=-inf r=0
a=-0x1.0000000000000p+0 b=nan r=1
a=-0x1.0000000000000p+0 b=0x1.8000000000000p+1 r=0
a=0x1.8000000000000p+0 b=0x0.0p+0 r=0
a=0x1.8000000000000p+0 b=-0x0.0p+0 r=0
a=0x1.8000000000000p+0 b=0x1.0000000000000p+0 r=0
a=0x1.8000000000000p+0 b=-0x1.0000000000000p+0 r=0
a=0x1.8000000000000p+0 b=0x1.8000000000000p+0 r=0
a=0x1.8000000000000p+0 b=inf r=0
a=0x1.8000000000000p+0 b=-inf r=0
a=0x1.8000000000000p+0 b=nan r=1
a=0x1.8000000000000p+0 b=0x1.8000000000000p+1 r=0
a=inf b=0x0.0p+0 r=0
a=inf b=-0x0.0p+0 r=0
a=inf b=0x1.0000000000000p+0 r=0
a=inf b=-0x1.0000000000000p+0 r=0
a=inf b=0x1.8000000000000p+0 r=0
a=inf b=inf r=0
a=inf b=-inf r=0
a=inf b=nan r=1
a=inf b=0x1.8000000000000p+1 r=0
a=-inf b=0x0.0p+0 r=0
a=-inf b=-0x0.0p+0 r=0
a=-inf b=0x1.0000000000000p+0 r=0
a=-inf b=-0x1.0000000000000p+0 r=0
a=-inf b=0x1.8000000000000p+0 r=0
a=-inf b=inf r=0
a=-inf b=-inf r=0
a=-inf b=nan r=1
a=-inf b=0x1.8000000000000p+1 r=0
a=nan b=0x0.0p+0 r=1
a=nan b=-0x0.0p+0 r=1
a=nan b=0x1.0000000000000p+0 r=1
a=nan b=-0x1.0000000000000p+0 r=1
a=nan b=0x1.8000000000000p+0 r=1
a=nan b=inf r=1
a=nan b=-inf r=1
a=nan b=nan r=1
a=nan b=0x1.8000000000000p+1 r=1
a=0x1.8000000000000p+1 b=0x0.0p+0 r=0
a=0x1.8000000000000p+1 b=-0x0.0p+0 r=0
a=0x1.8000000000000p+1 b=0x1.0000000000000p+0 r=0
a=0x1.8000000000000p+1 b=-0x1.0000000000000p+0 r=0
a=0x1.8000000000000p+1 b=0x1.8000000000000p+0 r=0
a=0x1.8000000000000p+1 b=inf r=0
a=0x1.8000000000000p+1 b=-inf r=0
a=0x1.8000000000000p+1 b=nan r=1
a=0x1.8000000000000p+1 b=0x1.8000000000000p+1 r=0

# combined with a predicate: both results are
-- insn setp.lt.and.s32 r|q, a, b, p;
-- regs a:s32 b:s32 p:pred -> r:pred q:pred
a=1 b=2 p=0 r=0 q=0
a=1 b=2 p=1 r=1 q=0
a=2 b=1 p=0 r=0 q=0
a=2 b=1 p=1 r=0 q=1

# combined with a negated predicate
-- insn setp.lt.and.s32 r, a, b, !p;
-- regs a:s32 b:s32 p:pred -> r:pred
a=1 b=2 p=0 r=1
a=1 b=2 p=1 r=0
a=2 b=1 p=0 r=0
a=2 b=1 p=1 r=0

# combined with a predicate: both results are
-- insn setp.lt.or.s32 r|q, a, b, p;
-- regs a:s32 b:s32 p:pred -> r:pred q:pred
a=1 b=2 p=0 r=1 q=0
a=1 b=2 p=1 r=1 q=1
a=2 b=1 p=0 r=0 q=1
a=2 b=1 p=1 r=1 q=1

# combined with a negated predicate
-- insn setp.lt.or.s32 r, a, b, !p;
-- regs a:s32 b:s32 p:pred -> r:pred
a=1 b=2 p=0 r=1
a=1 b=2 p=1 r=1
a=2 b=1 p=0 r=1
a=2 b=1 p=1 r=0

# combined with a predicate: both results are
-- insn setp.lt.xor.s32 r|q, a, b, p;
-- regs a:s32 b:s32 p:pred -> r:pred q:pred
a=1 b=2 p=0 r=1 q=0
a=1 b=2 p=1 r=0 q=1
a=2 b=1 p=0 r=0 q=1
a=2 b=1 p=1 r=1 q=0

# combined with a negated predicate
-- insn setp.lt.xor.s32 r, a, b, !p;
-- regs a:s32 b:s32 p:pred -> r:pred
a=1 b=2 p=0 r=0
a=1 b=2 p=1 r=1
a=2 b=1 p=0 r=1
a=2 b=1 p=1 r=0

# selp
-- insn selp.b32 r, a, b, p;
-- regs a:b32 b:b32 p:pred -> r:b32
a=0x80000001 b=0xfb653a46 p=0 r=0xfb653a46
a=0x80000001 b=0xfb653a46 p=1 r=0x80000001
a=0x2 b=0x0 p=0 r=0x0
a=0x2 b=0x0 p=1 r=0x2
a=0x7fffffff b=0x368725eb p=0 r=0x368725eb
a=0x7fffffff b=0x368725eb p=1 r=0x7fffffff
a=0xd54d386a b=0x2 p=0 r=0x2
a=0xd54d386a b=0x2 p=1 r=0xd54d386a

# selp
-- insn selp.b64 r, a, b, p;
-- regs a:b64 b:b64 p:pred -> r:b64
a=0xa4deeb4a2348385d b=0x8000000000000001 p=0 r=0x8000000000000001
a=0xa4deeb4a2348385d b=0x8000000000000001 p=1 r=0xa4deeb4a2348385d
a=0x0 b=0x0 p=0 r=0x0
a=0x0 b=0x0 p=1 r=0x0
a=0x1 b=0x55 p=0 r=0x55
a=0x1 b=0x55 p=1 r=0x1
a=0x55 b=0xffffffffffffffff p=0 r=0xffffffffffffffff
a=0x55 b=0xffffffffffffffff p=1 r=0x55

# selp
-- insn selp.b16 r, a, b, p;
-- regs a:b16 b:b16 p:pred -> r:b16
a=0x8001 b=0x1 p=0 r=0x1
a=0x8001 b=0x1 p=1 r=0x8001
a=0x8b4e b=0x8000 p=0 r=0x8000
a=0x8b4e b=0x8000 p=1 r=0x8b4e
a=0x8000 b=0x8001 p=0 r=0x8001
a=0x8000 b=0x8001 p=1 r=0x8000
a=0x3 b=0x394b p=0 r=0x394b
a=0x3 b=0x394b p=1 r=0x3

# testp
-- insn testp.finite.f32 r, a;
-- regs a:f32 -> r:pred
a=0x0.0p+0 r=1
a=0x1.0000000000000p+0 r=1
a=-inf r=0
a=nan r=0
a=0x1.0000000000000p-140 r=1
a=0x1.0000000000000p-126 r=1
a=0x1.c363cbf21f28ap+127 r=1

# testp
-- insn testp.infinite.f32 r, a;
-- regs a:f32 -> r:pred
a=0x0.0p+0 r=0
a=0x1.0000000000000p+0 r=0
a=-inf r=1
a=nan r=0
a=0x1.0000000000000p-140 r=0
a=0x1.0000000000000p-126 r=0
a=0x1.c363cbf21f28ap+127 r=0

# testp
-- insn testp.number.f32 r, a;
-- regs a:f32 -> r:pred
a=0x0.0p+0 r=1
a=0x1.0000000000000p+0 r=1
a=-inf r=1
a=nan r=0
a=0x1.0000000000000p-140 r=1
a=0x1.0000000000000p-126 r=1
a=0x1.c363cbf21f28ap+127 r=1

# testp
-- insn testp.notanumber.f32 r, a;
-- regs a:f32 -> r:pred
a=0x0.0p+0 r=0
a=0x1.0000000000000p+0 r=0
a=-inf r=0
a=nan r=1
a=0x1.0000000000000p-140 r=0
a=0x1.0000000000000p-126 r=0
a=0x1.c363cbf21f28ap+127 r=0

# testp
-- insn testp.normal.f32 r, a;
-- regs a:f32 -> r:pred
a=0x0.0p+0 r=1
a=0x1.0000000000000p+0 r=1
a=-inf r=0
a=nan r=0
a=0x1.0000000000000p-140 r=0
a=0x1.0000000000000p-126 r=1
a=0x1.c363cbf21f28ap+127 r=1

# testp
-- insn testp.subnormal.f32 r, a;
-- regs a:f32 -> r:pred
a=0x0.0p+0 r=0
a=0x1.0000000000000p+0 r=0
a=-inf r=0
a=nan r=0
a=0x1.0000000000000p-140 r=1
a=0x1.0000000000000p-126 r=0
a=0x1.c363cbf21f28ap+127 r=0

# by the sign of c
-- insn slct.b32.s32 r, a, b, c;
-- regs a:b32 b:b32 c:s32 -> r:b32
a=1 b=2 c=0 r=1
a=1 b=2 c=1 r=1
a=1 b=2 c=-1 r=2
a=1 b=2 c=5 r=1

# @!p leaves the register alone
-- insn mov.b32 r, b; @!p mov.b32 r, a;
-- regs a:b32 b:b32 p:pred -> r:b32
a=7 b=9 p=0 r=7
a=7 b=9 p=1 r=9
a=7 b=9 p=1 r=9
a=7 b=9 p=0 r=7

