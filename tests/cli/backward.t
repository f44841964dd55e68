Gradients: against golden files, and on random inputs against the fp64 adjoint of the recurrence. Widths that make
one block and several, odd lengths, chunks shorter and longer than the sequence, token-major strides, fp16.

-- case the golden files' gradients are checked with their outputs
-- args
check $DATA/mlstmsig_a.safetensors $DATA/mlstmsig_b.safetensors $DATA/mlstmsig_x.safetensors --device emu
-- exit 0
-- stdout
grad.q
grad.f
grad.S0

-- case one token
-- args
check mlstm-sig-backward --shape B=1,NH=2,T=1,dqk=16,dhv=16 --device emu
-- exit 0
-- stdout
grad.i

-- case widths that are no powers of two, keys and values of unlike width
-- args
check mlstm-sig-backward --shape B=2,NH=1,T=17,dqk=24,dhv=40 --shape B=1,NH=2,T=15,dqk=120,dhv=64 --device emu
-- exit 0
-- stdout
grad.v

-- case two loops: the values in several blocks
-- args
check mlstm-sig-backward --shape B=1,NH=1,T=300,dqk=128,dhv=256 --shape B=1,NH=1,T=63,dqk=48,dhv=512 --device emu
-- exit 0
-- stdout
grad.f

-- case a sequence of many chunks that none divides
-- args
check mlstm-sig-backward --shape B=1,NH=2,T=1000,dqk=32,dhv=16 --chunk 64 --device emu
-- exit 0
-- stdout
grad.S0

-- case one chunk for the whole sequence
-- args
check mlstm-sig-backward --shape B=1,NH=2,T=130,dqk=80,dhv=72 --chunk 256 --device emu
-- exit 0
-- stdout
grad.k

-- case token-major strides and fp16
-- args
check mlstm-sig-backward --shape B=2,NH=3,T=65,dqk=64,dhv=128 --layout bthd --dtype f16 --device emu
-- exit 0
-- stdout
grad.q

-- case keys too wide for one block are refused with the reason
-- args
check mlstm-sig-backward --shape B=1,NH=1,T=64,dqk=256,dhv=64 --device emu
-- exit 2
-- stderr
TG0530
registers a thread; at most 255

-- case fp32 inputs are refused with the reason
-- args
check mlstm-sig-backward --shape B=1,NH=1,T=64,dqk=64,dhv=64 --dtype f32 --device emu
-- exit 2
-- stderr
TG0515
