//! The network: Qwen2 with quantized weights, one sequence, and a key-value cache that can be truncated.
//!
//! It is candle's `quantized_qwen2` with three changes: the cache is kept and can be truncated to any length, the
//! embedding table is never dequantized (which saves most of a gigabyte), and query heads that share a key head are
//! multiplied together instead of copying the keys.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use candle_core::quantized::{QMatMul, QTensor, gguf_file};
use candle_core::{DType, Device, Module, Result, Tensor};
use candle_nn::{ops, rotary_emb};

/// The shape of the network, from the metadata of the file.
#[derive(Debug, Clone, Copy)]
struct Shape {
    layers: usize,
    width: usize,
    heads: usize,
    key_heads: usize,
    epsilon: f32,
    rope_base: f32,
}

impl Shape {
    fn read(content: &gguf_file::Content) -> Result<Self> {
        let get = |key: &str| {
            let key = format!("qwen2.{key}");
            content
                .metadata
                .get(&key)
                .ok_or_else(|| candle_core::Error::Msg(format!("the file has no {key}")))
        };
        let number = |key: &str| Ok::<_, candle_core::Error>(get(key)?.to_u32()? as usize);
        Ok(Self {
            layers: number("block_count")?,
            width: number("embedding_length")?,
            heads: number("attention.head_count")?,
            key_heads: number("attention.head_count_kv")?,
            epsilon: get("attention.layer_norm_rms_epsilon")?.to_f32()?,
            rope_base: get("rope.freq_base").and_then(|value| value.to_f32()).unwrap_or(10_000.0),
        })
    }

    fn head_width(&self) -> usize {
        self.width / self.heads
    }
}

#[derive(Debug)]
struct Layer {
    attention_norm: Tensor,
    /// Query, key and value, each with its bias.
    projections: [(QMatMul, Tensor); 3],
    output: QMatMul,
    feed_norm: Tensor,
    gate: QMatMul,
    up: QMatMul,
    down: QMatMul,
    keys: Tensor,
    values: Tensor,
}

/// The weights and the key-value cache.
#[derive(Debug)]
pub(crate) struct QwenModel {
    shape: Shape,
    embeddings: QMatMul,
    layers: Vec<Layer>,
    norm: Tensor,
    head: QMatMul,
    cos: Tensor,
    sin: Tensor,
    context: usize,
    cached: usize,
}

/// Loads tensors from the file and reports the progress.
struct Loader<'a> {
    file: File,
    content: &'a gguf_file::Content,
    progress: &'a mut dyn FnMut(u64),
}

impl Loader<'_> {
    fn tensor(&mut self, name: &str) -> Result<Arc<QTensor>> {
        let tensor = self.content.tensor(&mut self.file, name, &Device::Cpu)?;
        (self.progress)(tensor.storage_size_in_bytes() as u64);
        Ok(Arc::new(tensor))
    }

    fn matrix(&mut self, name: &str) -> Result<QMatMul> {
        Ok(QMatMul::QTensor(self.tensor(name)?))
    }

    fn plain(&mut self, name: &str) -> Result<Tensor> {
        self.tensor(name)?.dequantize(&Device::Cpu)
    }

    fn layer(&mut self, index: usize, shape: &Shape, context: usize) -> Result<Layer> {
        let name = |part: &str| format!("blk.{index}.{part}");
        let mut biased = |part: &str| {
            Ok::<_, candle_core::Error>((
                self.matrix(&name(&format!("{part}.weight")))?,
                self.plain(&name(&format!("{part}.bias")))?,
            ))
        };
        let projections = [biased("attn_q")?, biased("attn_k")?, biased("attn_v")?];
        // The kernel allocates zeroed pages only when they are written.
        let cache =
            || Tensor::zeros((shape.key_heads, context, shape.head_width()), DType::F32, &Device::Cpu);
        Ok(Layer {
            attention_norm: self.plain(&name("attn_norm.weight"))?,
            projections,
            output: self.matrix(&name("attn_output.weight"))?,
            feed_norm: self.plain(&name("ffn_norm.weight"))?,
            gate: self.matrix(&name("ffn_gate.weight"))?,
            up: self.matrix(&name("ffn_up.weight"))?,
            down: self.matrix(&name("ffn_down.weight"))?,
            keys: cache()?,
            values: cache()?,
        })
    }
}

impl QwenModel {
    /// Loads the weights; `progress` receives the size of each tensor.
    pub(crate) fn load(
        path: &Path,
        content: &gguf_file::Content,
        context: usize,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Self> {
        let shape = Shape::read(content)?;
        let mut loader = Loader { file: File::open(path)?, content, progress };
        let embeddings = loader.tensor("token_embd.weight")?;
        let head = match content.tensor_infos.contains_key("output.weight") {
            true => loader.tensor("output.weight")?,
            false => embeddings.clone(),
        };
        let layers = (0..shape.layers).map(|index| loader.layer(index, &shape, context));
        let layers = layers.collect::<Result<Vec<_>>>()?;
        let norm = loader.plain("output_norm.weight")?;
        let (cos, sin) = rotation_tables(&shape, context)?;
        let (embeddings, head) = (QMatMul::QTensor(embeddings), QMatMul::QTensor(head));
        Ok(Self { shape, embeddings, layers, norm, head, cos, sin, context, cached: 0 })
    }

    pub(crate) fn context(&self) -> usize {
        self.context
    }

    /// Truncates the cache to `length` tokens.
    pub(crate) fn truncate(&mut self, length: usize) {
        self.cached = self.cached.min(length);
    }

    /// Appends the tokens and returns the logits of the next one.
    pub(crate) fn read(&mut self, tokens: &[u32]) -> Result<Vec<f32>> {
        let x = self.forward(tokens)?;
        let last = x.narrow(0, tokens.len() - 1, 1)?.contiguous()?;
        let last = ops::rms_norm(&last, &self.norm, self.shape.epsilon)?;
        self.head.forward(&last)?.flatten_all()?.to_vec1()
    }

    /// Appends the tokens without computing logits.
    pub(crate) fn feed(&mut self, tokens: &[u32]) -> Result<()> {
        self.forward(tokens).map(drop)
    }

    fn forward(&mut self, tokens: &[u32]) -> Result<Tensor> {
        let (start, count) = (self.cached, tokens.len());
        if count == 0 || start + count > self.context {
            candle_core::bail!("{count} tokens after {start} do not fit into {}", self.context);
        }
        let mut x = self.embeddings.embedding(&Tensor::new(tokens, &Device::Cpu)?)?;
        let rotations = (self.cos.narrow(0, start, count)?, self.sin.narrow(0, start, count)?);
        let mask = (count > 1).then(|| causal_mask(start, count)).transpose()?;
        for layer in &self.layers {
            let attended = layer.attend(&x, &self.shape, start, &rotations, mask.as_ref())?;
            x = (x + attended)?;
            x = (&x + layer.feed(&x, &self.shape)?)?;
        }
        self.cached = start + count;
        Ok(x)
    }
}

impl Layer {
    fn attend(
        &self,
        x: &Tensor,
        shape: &Shape,
        start: usize,
        (cos, sin): &(Tensor, Tensor),
        mask: Option<&Tensor>,
    ) -> Result<Tensor> {
        let (count, width) = (x.dim(0)?, shape.head_width());
        let x = ops::rms_norm(x, &self.attention_norm, shape.epsilon)?;
        let [query, key, value] = &self.projections;
        let mut outs = multiply_all(&[&query.0, &key.0, &value.0], &x)?.into_iter();
        let mut next = |bias: &Tensor, heads: usize| {
            let out = outs.next().ok_or_else(|| candle_core::Error::Msg("a projection is missing".into()))?;
            out.broadcast_add(bias)?.reshape((count, heads, width))?.transpose(0, 1)?.contiguous()
        };
        let query = next(&query.1, shape.heads)?;
        let key = next(&key.1, shape.key_heads)?;
        let value = next(&value.1, shape.key_heads)?;
        let query = rotary_emb::rope(&query.unsqueeze(0)?, cos, sin)?;
        let key = rotary_emb::rope(&key.unsqueeze(0)?, cos, sin)?.squeeze(0)?;
        self.keys.slice_set(&key, 1, start)?;
        self.values.slice_set(&value, 1, start)?;
        let keys = self.keys.narrow(1, 0, start + count)?;
        let values = self.values.narrow(1, 0, start + count)?;

        let group = shape.heads / shape.key_heads;
        let query =
            (query * (1.0 / (width as f64).sqrt()))?.reshape((shape.key_heads, group * count, width))?;
        let mut scores = query.matmul(&keys.t()?)?;
        if let Some(mask) = mask {
            scores = scores.reshape((shape.heads, count, start + count))?.broadcast_add(mask)?;
            scores = scores.reshape((shape.key_heads, group * count, start + count))?;
        }
        let mixed = ops::softmax_last_dim(&scores)?.matmul(&values)?;
        let mixed = mixed.reshape((shape.heads, count, width))?.transpose(0, 1)?;
        self.output.forward(&mixed.reshape((count, shape.width))?)
    }

    fn feed(&self, x: &Tensor, shape: &Shape) -> Result<Tensor> {
        let x = ops::rms_norm(x, &self.feed_norm, shape.epsilon)?;
        let outs = multiply_all(&[&self.gate, &self.up], &x)?;
        self.down.forward(&(outs[0].silu()? * &outs[1])?)
    }
}

/// Multiplies by several matrices in one pass, if the processor supports it.
fn multiply_all(matrices: &[&QMatMul], x: &Tensor) -> Result<Vec<Tensor>> {
    let quantized = matrices.iter().map(|matrix| match matrix {
        QMatMul::QTensor(tensor) => Some(tensor.as_ref()),
        QMatMul::Tensor(_) | QMatMul::TensorF16(_) => None,
    });
    if let Some(quantized) = quantized.collect::<Option<Vec<_>>>()
        && let Some(outs) = QTensor::gemv_fused_shared_lhs(&quantized, x)?
    {
        return Ok(outs);
    }
    matrices.iter().map(|matrix| matrix.forward(x)).collect()
}

/// The cosines and sines of the rotary position embedding.
fn rotation_tables(shape: &Shape, context: usize) -> Result<(Tensor, Tensor)> {
    let width = shape.head_width();
    let speeds = (0..width).step_by(2).map(|i| shape.rope_base.powf(-(i as f32) / width as f32));
    let speeds: Vec<f32> = speeds.collect();
    let angles: Vec<f32> =
        (0..context).flat_map(|position| speeds.iter().map(move |speed| position as f32 * speed)).collect();
    let angles = Tensor::from_vec(angles, (context, width / 2), &Device::Cpu)?;
    Ok((angles.cos()?, angles.sin()?))
}

/// The causal mask: hides later tokens from earlier ones.
fn causal_mask(start: usize, count: usize) -> Result<Tensor> {
    let row = |i: usize| (0..start + count).map(move |j| if j > start + i { f32::NEG_INFINITY } else { 0.0 });
    let cells: Vec<f32> = (0..count).flat_map(row).collect();
    Tensor::from_vec(cells, (count, start + count), &Device::Cpu)
}
