What the commands print when all is well; one object a file, with these keys, is what scripts read.

-- case a golden file
-- args
check $DATA/mlstmsig_a.safetensors --device emu
-- exit 0
-- stdout
out.h    rms
against the file
mlstm-sig-backward bf16
grad.q   rms
grad.f   rms
  ok
! FAILED

-- case the same as JSON
-- args
check mlstmsig $DATA/mlstmsig_b.safetensors --device emu --json
-- exit 0
-- stdout
"ok":true,"device":"Tegula emulator","programs":[{"variant":"mlstm-sig","dtype":"bf16","shape":{"B":
"schedule":"tfla
"origin":"default"}
"tensors":[{"name":"out.h","rms_ratio":
"rms_limit":0.004,"max_ratio":
"max_ratio":
! not checked

-- case one file is good and one does not exist
-- args
check $DATA/mlstmsig_x.safetensors nowhere.safetensors --device emu --json
-- exit 2
-- stdout
"ok":true
{"file":"nowhere.safetensors","ok":false

-- case a truth that is wrong fails the check
-- tensors x.safetensors
in.q BF16 1,2,64,32
in.k BF16 1,2,64,32
in.v BF16 1,2,64,32
in.f F32 1,2,64
in.i F32 1,2,64
out.h F32 1,2,64,32
meta variant mlstmsig
-- args
check x.safetensors --device emu
-- exit 1
-- stdout
out.h
FAILED, against the file
furthest off at [
against the oracle

-- case inputs under their plain names
-- tensors x.safetensors
q F16 1,2,64,32
k F16 1,2,64,32
v F16 1,2,64,32
f F32 1,2,64
i F32 1,2,64
-- args
run mlstm-sig --in x.safetensors --out h.safetensors --device emu --time
-- exit 0
-- stdout
mlstm-sig f16, B=1 NH=2 T=64 dqk=32 dhv=32
of that our own: compile and load

-- case a program as files
-- args
compile mlstm-sig --arch sm_80 --dtype bf16 --dqk 32 --dhv 64 -o out --name my_kernel
-- exit 0
-- stdout
out/my_kernel.H.ptx
out/my_kernel.tgb
out/my_kernel.c
out/my_kernel.h
out/tegula_embed.h

-- case the decode step of a variant has a name of its own
-- args
compile mlstm-sig --arch sm_80 --dtype bf16 --dqk 32 --dhv 64 --tokens 1 -o out
-- exit 0
-- stdout
out/mlstm_sig_step.h

-- case every stage can be printed
-- args
explain mlstm-sig --arch sm_80 --dqk 32 --dhv 64 --stage ptx --ptxas none
-- exit 0
-- stdout
accepted on sm_80
.visible .entry
mma.sync

-- case a schedule refused, with the reason and its numbers
-- args
explain mlstm-sig --arch sm_80 --dtype bf16 --dqk 512 --dhv 512 --schedule "tfla H.dhv=512"
-- exit 2
-- stderr
H

-- case a sequence of no tokens: no output, and the state that came in goes out
-- tensors x.safetensors
q BF16 1,2,0,32
k BF16 1,2,0,32
v BF16 1,2,0,32
f F32 1,2,0
i F32 1,2,0
S0 F32 1,2,32,32
-- args
check mlstm-sig x.safetensors --device emu
-- exit 0
-- stdout
out.S    rms 0.00e+00
! FAILED

-- case a batch of no sequences
-- tensors x.safetensors
q BF16 0,2,64,32
k BF16 0,2,64,32
v BF16 0,2,64,32
f F32 0,2,64
i F32 0,2,64
-- args
run mlstm-sig --in x.safetensors --out h.safetensors --device emu
-- exit 0
-- stdout
B=0 NH=2 T=64

-- case levels that a file brings do not void a check
-- tensors x.safetensors
meta variant linear
meta error_levels {"bf16_mma": {"o": [100, 100]}}
in.q BF16 1,1,16,16
in.k BF16 1,1,16,16
in.v BF16 1,1,16,16
out.h F32 1,1,16,16
-- args
check x.safetensors --device emu
-- exit 1
-- stdout
(limit 2.50e-01)
FAILED, against the file

-- case instructions of warpgroups are matrix instructions too
-- args
explain mlstm-sig --arch sm_90a --dqk 128 --dhv 256 --schedule walk --ptxas none
-- exit 0
-- stdout
tegula_mlstm_sig_walk: 384 threads, shared 213 KiB, 40 mma
