Devices, plugins and what a run needs beside its files.

-- case the emulator and the targets are listed
-- args
devices
-- exit 0
-- stdout
emu
-> sm_80, predicted as A100
sm_120a

-- case a device that is no number
-- args
check $DATA/mlstmsig_a.safetensors --device gpu
-- exit 2
-- stderr
--device: expected 'emu' or a GPU number, found 'gpu'

-- case a GPU that is not there
-- args
check $DATA/mlstmsig_a.safetensors --device 900
-- exit 2
-- stderr
hint:

-- case a plugin that is not there
-- args
variants --load mine.so
-- exit 2
-- stderr
--load mine.so: no such file

-- case a plugin that is no shared object
-- text mine.so
not an ELF file
-- args
variants --load mine.so
-- exit 2
-- stderr
--load mine.so:
it must be a shared object

-- case a plugin that is a pipe: nobody waits for it
-- pipe mine.so
-- args
variants --load mine.so
-- exit 2
-- stderr
--load mine.so: expected a regular file

-- case a library that is no plugin
-- args
variants --load $LIB/libtegula-emu.so
-- exit 2
-- stderr
it does not export `tg_variants`

-- case a variant of the user's own is listed, and says nothing that is not needed
-- args
variants --load $LIB/mine.so
-- exit 0
-- stdout
mine
small-tiles
-- stderr
! warning
! error

-- case and can be explained
-- args
explain mine --load $LIB/mine.so --arch sm_80 --dqk 64 --dhv 64 --ptxas none
-- exit 0
-- stdout
small-tiles, chunk 128

-- case schedules join a variant that comes with tegula, forward and backward, and its own stay
-- args
check mlstm-sig --load $LIB/joins.so --device emu --arch sm_80 --shape B=1,NH=2,T=100,dqk=32,dhv=64 --schedule own --grad --backward-schedule own
-- exit 0
-- stdout
schedule own (--schedule)
mlstm-sig-backward bf16, B=1 NH=2 T=100 dqk=32 dhv=64; schedule own
grad.f
grad.k
! FAILED

-- case a table joins the backward of another family, whose algorithm it then is of
-- args
check gla --load $LIB/joins_gla.so --device emu --arch sm_80 --shape B=1,NH=2,T=100,dqk=32,dhv=32 --grad --backward-schedule own
-- exit 0
-- stdout
gla-backward bf16, B=1 NH=2 T=100 dqk=32 dhv=32; schedule own
grad.gx
! FAILED

-- case a warning is no reason to refuse
-- args
explain unused --load $LIB/unused.so --arch sm_80 --dqk 64 --dhv 64 --ptxas none
-- exit 0
-- stdout
REFUSED refused: TG0515 schedule refused on sm_80: kernel rows: mma.sync m16n8k8 takes f32 operands
! TG0110
-- stderr
u is not used

-- case ... by their names
-- args
variants --load $LIB/joins.so --json
-- exit 0
-- stdout
"own","step"

-- case ... and only one that there is
-- args
explain none --load $LIB/joins.so
-- exit 2
-- stderr
unknown variant 'none'

-- case and is not known without --load
-- args
explain mine --arch sm_80
-- exit 2
-- stderr
unknown variant 'mine'
